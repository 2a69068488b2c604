"""Scripts of single cases for people without onnxspec: they need only onnx, NumPy and the runtime.

A script holds the node, the inputs and the expected outputs. It exits with 1 if an output is wrong, and with 2 if the
runtime or a package cannot be loaded. The expected outputs do not depend on reported states: a script must also pass on
a repaired runtime.
"""

from __future__ import annotations

import inspect
import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ....cases import Case, Violation
from ....reference import FORMATS
from ...targets.target import Target, usual_target
from .runtime import Runtime, runtime_of
from .statements import WIDTH, bits, expected_of, feeds_of, model_of, numbers, ratios, source, unpacked, wrapped


def script_of(case: Case, target: Target | None = None) -> str | None:
    """Return a Python script that runs a case on a target and reports elements outside their radius.

    Return None for targets that are programs or backend modules, and for graphs of several nodes: use the test-case
    directory.

    target
        Its provider, options and accuracy class go into the script; None: onnxruntime's CPU provider.

    The script accepts every interpretation that the case leaves open, and ignores conventions. For an invalid model it
    exits with 1 if the model runs.
    """
    target = target or usual_target(case.trial.node.domain)
    runtime, violation = runtime_of(case, target), case.trial.violation
    if runtime is None or not case.trial.subject.is_lone:
        return None
    if violation is None:
        sentences, lines_of_end = _comparison(case, target.accuracy, runtime)
    else:
        sentences, lines_of_end = _refusal(case, violation, runtime)
    body = [*feeds_of(case), "", *model_of(case), *lines_of_end]
    functions = [f for f in _STANDARD if re.search(rf"\b{f.__name__}\(", "\n".join(body))]
    standard = {"sys"}.union(*(_STANDARD[f] for f in functions), runtime.standard)
    lines = [
        *_heading(case, *sentences),
        *_started(target),
        *_imports(standard, runtime),
        *(line for f in functions for line in ("", "", *inspect.getsource(f).splitlines())),
        "",
        "",
        *body,
    ]
    return "\n".join(lines) + "\n"


_STANDARD: dict[Callable[..., Any], set[str]] = {
    unpacked: {"base64", "zlib"},
    bits: set(),
    numbers: set(),
    ratios: set(),
}
"""Functions that a script may hold, with the modules of the standard library that each needs."""

_COMPARISON = """
worst = {{}}
results = [(k, run(k)) for k in range(len(FEEDS)) for _ in range(2)]
for interpretation, expected in EXPECTED.items():
    lines, worst[interpretation] = [f"{{interpretation}}:"], 0.0
    for k, outputs in results:
        for name, (value, radius) in expected[k].items():
            got, place = outputs[name], f"run {{k + 1}}, {{name}}"{lacking}
            if got is None or got.shape != value.shape or got.dtype.name not in ({types}):
                form = "missing" if got is None else f"{{got.dtype.name}} {{got.shape}}"
                lines.append(f"  {{place}} is {{form}}, must be {dtype} {{value.shape}}")
                worst[interpretation] = np.inf
            elif value.size:
                ratio = ratios({got}, value, radius, {largest})
                at = np.unravel_index(int(ratio.argmax()), ratio.shape)
                must = f"expected {{value[at]:.9g}}, error bound {{radius[at]:.3g}}, |error|/bound {{ratio[at]:.3g}}"
                lines.append(f"  {{place}}{{[int(i) for i in at]}}: got {{float({got}[at]):.9g}}, {{must}}")
                worst[interpretation] = max(worst[interpretation], float(ratio[at]))
    print("\\n".join(dict.fromkeys(lines)))
least = min(worst.values())
print(f"worst |error|/bound: {{least:.3g}}:", "outside" if least > 1 else "inside")
sys.exit(least > 1)
"""

_LACKING = """
            if got is None:  # asked for against output_sequence 0, it may be missing
                continue"""


def _comparison(case: Case, accuracy: str, runtime: Runtime) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sentences of the docstring, and the lines that run the target and compare each output."""
    half, type_names = case.spec.type == "bfloat16", _types_of(case)
    comparison = _COMPARISON.format(
        lacking=_LACKING if "sequence_output" in case.trial.open_questions else "",
        dtype=" or ".join(type_names),
        types=", ".join(f'"{name}"' for name in (*type_names, *(["uint16"] if half else []))) + ",",
        got="numbers(got)" if half else "got.astype(np.float64)",
        largest=repr(FORMATS[case.spec.type].largest),
    )
    sentences = (
        "Each output is compared with a computation in float64 from the inputs alone. The error bound is",
        f"the largest error of the accuracy class {accuracy!r}; exits 1 where an output is outside. Tables of steps",
        "may have other numbers: there, each step is computed from the state that the runtime returned before.",
    )
    lines = ("", *expected_of(case, accuracy), "", *runtime.lines.strip().splitlines(), "", *comparison.splitlines())
    return sentences, lines


def _refusal(case: Case, violation: Violation, runtime: Runtime) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sentences of the docstring, and the lines that check that the target refuses an invalid model."""
    sentences = (
        f"The document forbids this model: {violation.summary}.",
        f"It must be refused, due at {violation.due}; exits 1 where it runs.",
    )
    lines = (
        "",
        "",
        "def attempt() -> None:",
        *textwrap.indent(runtime.lines.strip().replace("\n\n\n", "\n\n"), "    ").splitlines(),
        "",
        "    for k in range(len(FEEDS)):",
        "        run(k)",
        "",
        "",
        "try:",
        "    attempt()",
        "except Exception as error:",
        '    print(f"refused, as it must be: {type(error).__name__}: {error}")',
        "    sys.exit(0)",
        *wrapped(f"print({source(f'accepted, but invalid: {violation.summary}')})"),
        "sys.exit(1)",
    )
    return sentences, lines


def _types_of(case: Case) -> tuple[str, ...]:
    """Return the names of the types of outputs."""
    usual = FORMATS[case.spec.type].dtype
    codecs = map(case.trial.node.codecs.get, case.trial.node.outputs)
    return tuple(dict.fromkeys((usual if codec is None else codec.dtype).name for codec in codecs))


def _heading(case: Case, *sentences: str) -> Iterator[str]:
    """Yield the script's docstring. An id cannot be broken into lines, so a long one gets a ``noqa`` comment."""
    lines = [f'"""{case.trial.node.operator.name}: {case.spec.id}', "", *sentences]
    yield from lines
    yield '"""  # noqa: E501' if max(map(len, lines)) > WIDTH else '"""'


def _imports(standard: Iterable[str], runtime: Runtime) -> Iterator[str]:
    yield ""
    yield "from __future__ import annotations"
    yield ""
    yield from (f"import {name}" for name in sorted(standard))
    imports = ("import numpy as np", "from onnx import TensorProto, helper", *runtime.imports)
    yield ""
    yield "try:"
    yield from (f"    {line}" for line in sorted(imports, key=lambda line: (line.startswith("from "), line)))
    yield "except ImportError as error:"
    yield '    print(f"not tried: {error}", file=sys.stderr)'
    yield "    sys.exit(2)"


def _started(target: Target) -> Iterator[str]:
    # The command that starts a target's worker shows how to start the script.
    command = [part for part in target.command if part not in ("{worker}", "{source}")]
    parts = [*(f"{name}={value}" for name, value in target.environment.items()), *command]
    if parts:
        text = "The target is started with: " + " ".join(shlex.join(parts).split())
        yield ""
        yield from textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
