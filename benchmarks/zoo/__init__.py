"""Zoo: kernels with faults, by authors who had not read our tables of faults, axes or profiles.

Each batch is a module of its own, dated and frozen: a NumPy kernel of LSTM, GRU and RNN, and some twenty-five faults in
it as a maintainer would meet them, each with a legal model and inputs on which it shows. `python -m benchmarks.zoo`
prints how many of them lists of cases catch. A score on our own faults proves little; we did not choose these.

Contents of a batch:

``WRITTEN``
    The date in ISO format.
``FAULTS``
    Id to one sentence on the kernel's behaviour.
``prepare(model, fault)``
    Return a session of a serialized model with a fault, or None for the right kernel: an object with ``run(feeds)``,
    feeds by name, which returns the outputs of the graph in order. Raise NotImplementedError for unsupported models.
``witness(fault)``
    Return a legal model and the feeds of a session's runs; the fault shows in the last run.
"""
