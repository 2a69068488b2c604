"""ONNX test-case directories: writing, reading, and whether a fixed tolerance judges them fairly."""
