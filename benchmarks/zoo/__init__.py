"""A zoo: kernels with faults that were written by who had not read our tables of faults, axes or profiles.

Each batch is a module of its own, dated and frozen: a NumPy kernel of LSTM, GRU and RNN, and some twenty-five faults
in it as a maintainer would meet them, each with a legal model and inputs on which it shows. `python -m benchmarks.zoo`
says how many of them lists of cases catch. A score on our own faults says little; this one was not chosen by us.

What a batch defines:

``WRITTEN``
    The day, as ISO has it.
``FAULTS``
    Id to one sentence: what the kernel does.
``prepare(model, fault)``
    A session of a serialized model with a fault, or None for the right kernel: an object with ``run(feeds)``, feeds by
    name, which returns the outputs of the graph in order. What it does not support raises NotImplementedError.
``witness(fault)``
    A legal model and the feeds of a session's runs, in the last of which the fault shows.
"""
