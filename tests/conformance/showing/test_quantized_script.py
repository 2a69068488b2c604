"""The script of a quantized case needs only onnx, NumPy and the runtime; its inputs and outputs are levels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.showing.script.script import script_of


def test_it_passes_on_a_right_runtime_and_fails_where_a_zero_point_is_lost(tmp_path: Path) -> None:
    spec = CaseSpec(
        *("GRU", 14, "float32"), T=3, N=2, I=2, H=3, bias=True, outputs=("Y", "Y_h"), weights="initializer",
        quantization="u16", weight_type="s8", channels="rows", bias_type="product",
    )  # fmt: skip
    text = script_of(build_case(spec)) or ""
    assert 'domain="com.microsoft"' in text
    wrong = text.replace("model = helper.make_model(", "WRONG\nmodel = helper.make_model(")
    swap = 'next(t for t in graph.initializer if t.name == "X_zero_point").raw_data = bytes(2)'
    for name, script, code in (("right", text, 0), ("wrong", wrong.replace("WRONG", swap), 1)):
        path = tmp_path / f"{name}.py"
        path.write_text(script)
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
