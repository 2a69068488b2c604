"""onnxspec under pytest."""
