"""ONNX test-case directories: written, read, and told whether a runner with one tolerance may judge them."""
