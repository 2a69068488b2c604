"""``python -m onnxspec.conformance``: the command ``onnxspec``, where no script of that name is on the path."""

from .cli.start import main

main()
