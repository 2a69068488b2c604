"""Where the packages are: at the top of the repository, and installed inside ``onnxspec``."""

from setuptools import find_packages, setup

TOP = ("reference", "cases", "conformance", "reports")
setup(
    packages=["onnxspec", *(f"onnxspec.{name}" for name in find_packages(include=[f"{top}*" for top in TOP]))],
    package_dir={"onnxspec": "src/onnxspec", **{f"onnxspec.{top}": top for top in TOP}},
)
