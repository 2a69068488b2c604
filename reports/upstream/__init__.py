"""Findings for upstream projects: an issue for a runtime's maintainers, a node test for onnx."""
