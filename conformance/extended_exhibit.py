"""What a reader must see of a case of ExtendedLSTM: its numbers around the place where they part, in levels of y_scale,
and a script that needs only onnx, NumPy and the runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import getsource
from typing import Any

import numpy as np

from ..cases.extended_profile import broken_draft
from ..cases.extended_spec import DOMAIN, OLD, ExtendedSpec
from ..cases.extended_violations import extended_violation
from ..reference import clause_named
from ..reference.extended_mistakes import run_extended
from .extended_probe import runs_of
from .extended_verdict import Compared, ExtendedRun, arithmetic_of, compared
from .process import Outcome
from .script_parts import drawn
from .target import ACCURACY, Target
from .verdict import Judgement

__all__ = ["extended_numbers", "extended_script"]

_STEPS, _UNITS = 64, 64


def extended_numbers(
    spec: ExtendedSpec, outcomes: Sequence[Outcome], judgement: Judgement | None, accuracy: str
) -> dict[str, Any] | None:
    """The numbers of an exhibit, as :mod:`.exhibit` has them; levels stand in the place of gates. None where there are
    none to compare. Without outcomes they are those that are expected alone."""
    if spec.illegal:
        return None
    if not outcomes:
        run = runs_of(spec)[-1]
        pairs: list[tuple[ExtendedRun, Any]] = [(run, run_extended((), run.node))]
    elif outcomes[0].status != "ran" or outcomes[0].malformed:
        return None
    else:
        runs = zip(runs_of(spec), outcomes[0].outputs, strict=True)
        pairs = [(run, outputs[0]) for run, lists in runs for outputs in lists]
    state = "as-computed" if judgement is not None and "state-as-computed" in judgement.flags else "quantized"
    found = [compared(r, Y, arithmetic_of(accuracy), state) for r, Y in pairs if Y is not None and Y.size]
    if not found:
        return None
    worst = max(range(len(found)), key=lambda k: float(found[k].ratio.max()))
    c, y = found[worst], pairs[worst][0].node.y
    first = c.first
    t, d, n, h = first if first is not None else _focus(c)
    order = np.arange(len(c.got)) if d == 0 else np.arange(len(c.got))[::-1]
    step = int(np.argwhere(order == t)[0, 0])
    start = min(max(step - _STEPS // 2, 0), max(len(order) - _STEPS, 0))
    shown = range(start, min(start + _STEPS, len(order)))
    low = min(max(h - _UNITS // 2, 0), max(spec.H - _UNITS, 0))
    units = range(low, min(low + _UNITS, spec.H))

    def checked(at: tuple[int, ...]) -> dict[str, Any]:
        doubtful = bool(c.doubt[at])
        return {
            "must": None if doubtful else _plain(c.value[at], 9),
            "within": None if doubtful else _plain(c.radius[at], 3),
            "got": _plain(c.got[at], 9) if outcomes else None,
            "ratio": None if doubtful or not outcomes else _plain(c.ratio[at], 3),
        }

    lines = []
    for s in shown:
        at = (int(order[s]), d, n, h)
        level, must = (c.got[at], c.value[at]) if y is None else (c.got[at] / y.scale, c.value[at] / y.scale)
        values = {"must_levels": _plain(must, 7)}
        if outcomes:
            values = {"got_levels": _plain(level, 7), **values, "off_by": _plain(level - must, 4)}
        lines.append({"step": s, "position": at[0], "padding": False, "values": values, **checked(at)})
    names = list(lines[0]["values"]) if lines else []
    parting = None
    if first is not None and judgement is not None:
        way = "backward" if d else "forward"
        place = f"Y[{t}, {d}, {n}, {h}], step {step} {way}"
        parting = {"output": "Y", "place": place, "clause": judgement.clause, "step": step, **checked((t, d, n, h))}
    ratio = c.ratio[order][:, d, n]
    doubt = c.doubt[order][:, d, n]
    return {
        "title": "the case's own run" if len(pairs) == 1 else f"run {worst + 1}",
        "from_reported": True,
        "direction": "reverse" if d else "forward",
        "row": n,
        "unit": h,
        "parting": parting,
        "outputs": [],
        "gates": {"names": names, "of_steps": len(order), "lines": lines},
        "plane": {
            "steps": list(shown),
            "positions": [int(order[s]) for s in shown],
            "of_steps": len(order),
            "units": list(units),
            "of_units": spec.H,
            "length": len(order),
            "ratio": [[None if doubt[s, u] else _plain(ratio[s, u], 3) for u in units] for s in shown],
        },
        "states": [],
    }


def _focus(c: Compared) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unravel_index(int(c.ratio.argmax()), c.ratio.shape))


def _plain(value: Any, digits: int) -> Any:
    number = float(value)
    if np.isnan(number):
        return "nan"
    return float(f"{number:.{digits}g}") if np.isfinite(number) else ("inf" if number > 0 else "-inf")


_SCRIPT = '''"""{id}: {about}

{text}
{says}

Run with the path of AMD Quark's custom-op library as its argument, or in ONNXSPEC_QUARK_LIBRARY (onnxspec keeps the one
that it has built in its cache folder, ~/.cache/onnxspec/quark).
"""

import hashlib
import os
import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ATTRIBUTES = {attributes}
SHAPES = {shapes}
DATA = {data}  # tensor: where its numbers lie, the lowest and the highest, and the key of their generator
DOMAIN, NAME = {domain!r}, {name!r}


{drawn}

def tensor(name):
    """The input of that name; single elements that are no such numbers stand in SPECIAL."""
    low, high, key = DATA[name]
    array = ((low + high) / 2 + (high - low) / 2 * drawn(key, SHAPES[name], 24, 0)).astype(np.float32)
    for index, value in SPECIAL.get(name, []):
        array[index] = value
    return array.astype(TYPES.get(name, "float32"))


SPECIAL = {special}
TYPES = {types}
INPUTS = {{name: tensor(name) for name in SHAPES}}
OUTPUTS = {outputs}
FED = {fed}
nan, inf = float("nan"), float("inf")


def model():
    node = helper.make_node(NAME, {names}, OUTPUTS, "lstm", domain=DOMAIN, **ATTRIBUTES)
    kind = {{n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in INPUTS.items()}}
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
    options.register_custom_ops_library(sys.argv[1] if len(sys.argv) > 1 else os.environ["ONNXSPEC_QUARK_LIBRARY"])
    session = ort.InferenceSession(model(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {{n: INPUTS[n] for n in FED}})[0]

'''

_FORBIDDEN = """
try:
    run()
except Exception as error:
    print(f"refused, as it must be: {type(error).__name__}: {error}")
    sys.exit(0)
print(SUMMARY)
sys.exit(1)
"""

_REFUSED = """
try:
    run()
except Exception as error:
    print(f"refused, though the document allows it: {type(error).__name__}: {error}")
    sys.exit(1)
print("ran")
"""

_COMPARE = '''
def level(name, x):
    """Levels of x, saturated: what the document quantizes to."""
    scale, zero = np.float64(np.float32(ATTRIBUTES[name + "_scale"])), ATTRIBUTES[name + "_zero_point"]
    far = np.nan_to_num(np.rint(x.astype(np.float64) / scale), posinf=2.0**40, neginf=-(2.0**40))
    return (np.clip(far + zero, 0, 65535) - zero) * scale


def sigmoid(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


Y = run()
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
units[DOUBT] = 0
at = np.unravel_index(np.nan_to_num(units, nan=np.inf).argmax(), units.shape)
print(f"Y{list(map(int, at))} is {Y[at]:.9g}, must be {must[at]:.9g}: off by {units[at]:.6g} units of y_scale")
print(f"allowed: {ALLOWED:.4g} units; {int((units > ALLOWED).sum())} of {units.size} elements are off by more")
sys.exit(int(not (units <= ALLOWED).all()))
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
        elif not np.isfinite(array).all() or (np.abs(array) > 1e20).any():
            odd = np.argwhere(~(np.abs(array) < 1e20))
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
    text = _SCRIPT.format(
        id=spec.id,
        about=violation.summary if violation is not None else spec.about.replace("-", " "),
        text=f"{clause.id} ({clause.status}): {clause.text}",
        says="Exits 1 as long as the finding holds.",
        attributes=repr(dict(draft.attributes)),
        shapes=repr({n: a.shape for n, a in draft.inputs.items()}),
        data=repr(data),
        domain=domain,
        name=name,
        drawn=re.sub(r"def drawn\(.*", "def drawn(key, shape, precision, exponent):", getsource(drawn)),
        special=repr(special),
        types=repr(types),
        outputs=repr(draft.outputs),
        fed=repr([n for n in draft.inputs if n not in draft.constants]),
        names=repr(names),
    )  # fmt: skip
    text = text.replace("ATTRIBUTES = ", 'nan, inf = float("nan"), float("inf")\nATTRIBUTES = ', 1)
    text = text.replace('nan, inf = float("nan"), float("inf")\n\n\ndef model', "\n\ndef model", 1)
    if violation is not None:
        return text + _FORBIDDEN.replace("SUMMARY", repr(f"ran, and must be refused: {violation.summary}"))
    if spec.y is None or not spec.bias or not spec.hidden_size:
        return text + _REFUSED
    run = runs_of(spec)[-1]
    Y = run_extended((), run.node)
    c = compared(run, Y, arithmetic_of(target.accuracy if target is not None else ACCURACY), "quantized")
    assert run.node.y is not None
    allowed = float(c.radius[~c.doubt].max(initial=0.0)) / run.node.y.scale
    doubt = f"np.array({c.doubt.tolist()!r})" if c.doubt.any() else "np.zeros(must.shape, bool)"
    ending = _COMPARE.replace("ALLOWED", f"{allowed * 1.002:.4g}").replace("DOUBT", doubt)
    return text + ending.replace(f"{{{allowed * 1.002:.4g}:.4g}}", f"{allowed * 1.002:.4g}")
