"""ONNX test-case directories: writing, reading, and a check whether a fixed tolerance judges them fairly."""
