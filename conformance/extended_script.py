"""A case of ExtendedLSTM as a script that needs only onnx, NumPy and the runtime."""

from __future__ import annotations

import re
from inspect import getsource
from typing import Any

import numpy as np

from ..cases.extended_profile import broken_draft
from ..cases.extended_spec import DOMAIN, OLD, ExtendedSpec
from ..cases.extended_violations import extended_violation
from ..reference import clause_named
from ..reference.extended_mistakes import run_extended
from .extended_probe import runs_of
from .extended_verdict import arithmetic_of, compared
from .script_parts import drawn, filled
from .target import ACCURACY, Target

__all__ = ["extended_script"]

_SAYS = "Exits 1 as long as the finding holds."
_SAYS_REFUSED = "Exits 1 as long as it is refused. Its numbers are not looked at: without y_scale there are no levels."

_SCRIPT = '''"""@id: @about

@text
@says

Run with the path of AMD Quark's custom-op library as its argument, or in ONNXSPEC_QUARK_LIBRARY (onnxspec keeps the one
that it has built in its cache folder, ~/.cache/onnxspec/quark). Without one it exits with 2.
"""

import hashlib
import os
import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nan, inf = float("nan"), float("inf")
ATTRIBUTES = @attributes
SHAPES = @shapes
DATA = @data  # tensor: where its numbers lie, the lowest and the highest, and the key of their generator
DOMAIN, NAME = @domain, @name
LIBRARY = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ONNXSPEC_QUARK_LIBRARY", "")
if not os.path.isfile(LIBRARY):
    print(f"not tried: there is no library {LIBRARY!r}; give the path of one", file=sys.stderr)
    sys.exit(2)


@drawn

def tensor(name):
    """The input of that name; single elements that are no such numbers stand in SPECIAL."""
    low, high, key = DATA[name]
    array = ((low + high) / 2 + (high - low) / 2 * drawn(key, SHAPES[name], 24, 0)).astype(np.float32)
    for index, value in SPECIAL.get(name, []):
        array[index] = value
    return array.astype(TYPES.get(name, "float32"))


SPECIAL = @special
TYPES = @types
INPUTS = {name: tensor(name) for name in SHAPES}
OUTPUTS = @outputs
FED = @fed


def model():
    node = helper.make_node(NAME, @names, OUTPUTS, "lstm", domain=DOMAIN, **ATTRIBUTES)
    kind = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in INPUTS.items()}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, kind[n], INPUTS[n].shape) for n in FED],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in OUTPUTS],
        [numpy_helper.from_array(a, n) for n, a in INPUTS.items() if n not in FED],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def run():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.register_custom_ops_library(LIBRARY)
    session = ort.InferenceSession(model(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {n: INPUTS[n] for n in FED})[0]

'''

_FORBIDDEN = """
try:
    run()
except Exception as error:
    print(f"refused, as it must be: {type(error).__name__}: {error}")
    sys.exit(0)
print(@summary)
sys.exit(1)
"""

_REFUSED = """
try:
    Y = run()
except Exception as error:
    print(f"refused, though the document allows it: {type(error).__name__}: {error}")
    sys.exit(1)
"""

_RAN = """print("ran")
"""

_COMPARE = '''
def level(name, x):
    """Levels of x, saturated: what the document quantizes to."""
    scale, zero = np.float64(np.float32(ATTRIBUTES[name + "_scale"])), ATTRIBUTES[name + "_zero_point"]
    far = np.nan_to_num(np.rint(x.astype(np.float64) / scale), posinf=2.0**40, neginf=-(2.0**40))
    return (np.clip(far + zero, 0, 65535) - zero) * scale


def sigmoid(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


X, W, R = (level(n.lower(), INPUTS[n]) for n in "XWR")
B = level("b", INPUTS["B"]) if "B" in INPUTS else np.zeros((2, 8 * R.shape[2]))
T, N, H = X.shape[0], X.shape[1], R.shape[2]
scale, zero = np.float64(np.float32(ATTRIBUTES["y_scale"])), ATTRIBUTES["y_zero_point"]
must = np.zeros((T, 2, N, H))
for d in range(2):
    h, c = np.zeros((N, H)), np.zeros((N, H))
    for t in range(T) if d == 0 else reversed(range(T)):
        a = X[t] @ W[d].T + h @ R[d].T + B[d, : 4 * H] + B[d, 4 * H :]
        i, o, f, g = (a[:, k * H : (k + 1) * H] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        must[t, d] = np.clip(sigmoid(o) * np.tanh(c), -zero * scale, (65535 - zero) * scale)
        h = Y[t, d].astype(np.float64)  # each step from the state that was reported, so that errors do not add up
units = np.abs(Y - must) / scale
units[@doubt] = 0
if not units.size:
    print("ran; there are no numbers")
    sys.exit(0)
at = np.unravel_index(np.nan_to_num(units, nan=np.inf).argmax(), units.shape)
print(f"Y{list(map(int, at))} is {Y[at]:.9g}, must be {must[at]:.9g}: off by {units[at]:.6g} units of y_scale")
print(f"allowed: @allowed units; {int((units > @allowed).sum())} of {units.size} elements are off by more")
sys.exit(int(not (units <= @allowed).all()))
'''


def extended_script(spec: ExtendedSpec, target: Target | None) -> str:
    """The text of a script that runs a case of ExtendedLSTM and says what is wrong; exits 1 as long as it is."""
    draft = broken_draft(spec)
    violation = extended_violation(spec.illegal) if spec.illegal else None
    base = spec.draft.inputs
    data: dict[str, Any] = {}
    special: dict[str, list[Any]] = {}
    types: dict[str, str] = {}
    for name, array in draft.inputs.items():
        affine = getattr(spec, name.lower(), None)
        fill = dict(spec.fill).get(name, 1.0)
        scale, zero = affine if affine is not None else (0.0, 0)
        data[name] = (-zero * scale * fill, (65535 - zero) * scale * fill, f"ExtendedLSTM/{name}/{spec.seed}/0")
        if array.dtype != np.float32:
            types[name] = array.dtype.name
        changed = name not in base or array.shape != base[name].shape
        plain = array if changed or spec.data == "ties" else None
        if plain is not None and array.size <= 4096:
            special[name] = [((...,), np.asarray(array).tolist())]
        elif len(odd := np.argwhere(~(np.abs(array.astype(np.float64)) < 1e20))):
            special[name] = [(tuple(map(int, k)), float(array[tuple(k)])) for k in odd]
    clauses = [violation.clause] if violation is not None else [c.id for c in spec.clauses if c.needs] or [
        "extendedlstm.equations"
    ]  # fmt: skip
    clause = clause_named(clauses[0])
    domain, name = OLD if spec.old else (DOMAIN, "ExtendedLSTM")
    names = [n if n in draft.inputs else "" for n in ("X", "W", "R", "B")]
    names += [n for n in draft.inputs if n not in names]
    while names and not names[-1]:
        names.pop()
    text = filled(
        _SCRIPT,
        id=spec.id,
        about=violation.summary if violation is not None else spec.about.replace("-", " "),
        text=f"{clause.id} ({clause.status}): {clause.text}",
        says=_SAYS if violation is not None or spec.y is not None else _SAYS_REFUSED,
        attributes=repr(dict(draft.attributes)),
        shapes=repr({n: a.shape for n, a in draft.inputs.items()}),
        data=repr(data),
        domain=repr(domain),
        name=repr(name),
        drawn=re.sub(r"def drawn\(.*", "def drawn(key, shape, precision, exponent):", getsource(drawn)),
        special=repr(special),
        types=repr(types),
        outputs=repr(draft.outputs),
        fed=repr([n for n in draft.inputs if n not in draft.constants]),
        names=repr(names),
    )
    if violation is not None:
        return text + filled(_FORBIDDEN, summary=repr(f"ran, and must be refused: {violation.summary}"))
    if spec.y is None:
        return text + _REFUSED + _RAN
    run = runs_of(spec)[-1]
    Y = run_extended((), run.node)
    c = compared(run, Y, arithmetic_of(target.accuracy if target is not None else ACCURACY), "quantized")
    allowed = float(c.radius[~c.doubt].max(initial=0.0)) / spec.y[0]
    doubt = f"np.array({c.doubt.tolist()!r})" if c.doubt.any() else "np.zeros(must.shape, bool)"
    # The script computes with float64 in another order, and its bound is printed with four digits.
    return text + _REFUSED + filled(_COMPARE, allowed=f"{allowed * 1.002:.4g}", doubt=doubt)
