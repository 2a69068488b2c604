"""``python -m tests.toy ...``: onnxspec's command, with the invented operator registered."""

from onnxspec.conformance.cli.application import main

from . import cases_leaky, reference_leaky  # noqa: F401 - register it

main()
