"""``python -m tests.toy ...``: onnxspec's command, which knows the operator of nobody's too."""

from onnxspec.conformance.cli.application import main

from . import cases_leaky, reference_leaky  # noqa: F401 - register it

main()
