"""More than one machine: batches of cases as tasks of Dask's ``distributed``, results in the order of a run on one.

A task rebuilds its cases from their specs, runs them on the target that its machine has, judges them there, and sends
back what the target did with the verdicts. The run itself stays where it was started and knows no difference: what it
is given for a process is a :class:`ClusterProcess`.

Tasks are Python objects, which Dask pickles: whoever reaches a scheduler can have anything executed. So beyond this
machine only TLS is spoken, with the certificates that Dask's own configuration names.
"""
