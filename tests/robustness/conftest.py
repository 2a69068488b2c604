"""What faults are staged with: backends that can be imported, the command run for real, and a look at what runs."""

from __future__ import annotations

from ..conformance.conftest import kin as kin
from ..conformance.conftest import kin_folder as kin_folder
from ..conformance.conftest import onnxspec as onnxspec
