"""``python -m tests.toy ...``: onnxspec's command, with the invented operator registered."""

from onnxspec.conformance.cli.application import main

from . import leaky  # noqa: F401 - registers it

main()
