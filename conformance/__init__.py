"""The harness: targets and their workers, the run and its verdicts, the command line, the pytest plugin,
and the check of models, which needs no target.
"""
