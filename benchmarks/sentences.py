"""Sentences of findings, checked independently against every result, to find false ones.

    python -m benchmarks.sentences [--profile smoke] [--sample N] [--seed S] [--budget SECONDS] [--titles]
                                   [FAULT | FAULT+FAULT | KERNEL | BATCH:FAULT ...]

Without names it takes all faults of the table, as many pairs of them, and all kernels of `benchmarks/kernels` and
`benchmarks/zoo`: hours. `--sample` draws N of each, and `--budget` starts nothing more after that many seconds.
`--titles` prints the titles of findings beside the true faults. Exit code 1 if a sentence is false.

A condition must be true of all cases of its finding. A condition after "with" or "only with" must be false for every
passing case that should have shown the finding's fault. A confirmed name must explain each case of its finding. A
confirmed name, or a lead, must be one of the target's faults if these have ids; faults of the zoo have only
descriptions, for a person to read. This module interprets the texts itself, without the code that writes them.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.staging import findings_on, kernel_names, of_faults, on_kernel, on_zoo, zoo_names
from benchmarks.truths import TRUTHS, Truth
from onnxspec.cases import build_case, profile
from onnxspec.cases.specs.features import all_features
from onnxspec.conformance.diagnosis.conditions import worded, would_show
from onnxspec.conformance.diagnosis.needs import PHRASES
from onnxspec.conformance.judging.judgement import FAILING, Verdict
from onnxspec.conformance.probes.probe import Probe
from onnxspec.conformance.results.records import Finding
from onnxspec.conformance.results.result import Result
from onnxspec.reference import FAULTS, Fault, fault_named, versions_of
from onnxspec.reference.faults.scope import scoped_of

__all__ = ["false_sentences", "meets"]

_COUNTS = {"steps": "T", "step": "T", "rows": "N", "row": "N", "units": "H", "unit": "H"}
_COUNTS |= {"features of X": "I", "feature of X": "I"}

_PLAIN: Mapping[str, Callable[[Any], bool]] = {
    "the reverse direction": lambda s: s.direction in ("reverse", "bidirectional"),
    "the reverse direction alone": lambda s: s.direction == "reverse",
    "both directions": lambda s: s.direction == "bidirectional",
    "layout 1": lambda s: s.layout == 1,
    "bias": lambda s: s.bias,
    "no bias": lambda s: not s.bias,
    "no sequence_lens": lambda s: s.lengths == "absent",
    "no initial states": lambda s: s.initial == "none",
    "layout 0": lambda s: s.layout == 0,
    "one direction": lambda s: s.direction != "bidirectional",
    "peepholes P": lambda s: s.peepholes,
    "sequence_lens": lambda s: s.lengths != "absent",
    "a row shorter than the sequence": lambda s: any((lengths < s.T).any() for lengths in _lengths(s)),
    "a row of length 0": lambda s: any((lengths == 0).any() for lengths in _lengths(s)),
    "seq_length above 0": lambda s: s.T > 0,
    "rows of several lengths": lambda s: any(len({*lengths.tolist()}) > 1 for lengths in _lengths(s)),
    "initial states": lambda s: s.initial != "none",
    "all initial states": lambda s: s.initial == "all",
    "initial_h": lambda s: s.initial in ("h", "all"),
    "initial_c": lambda s: s.initial in ("c", "all"),
    "initial_h alone": lambda s: s.initial == "h",
    "initial_c alone": lambda s: s.initial == "c",
    "clip": lambda s: s.clip is not None,
    "input_forget": lambda s: bool(s.input_forget),
    "linear_before_reset": lambda s: bool(s.linear_before_reset),
    "no hidden_size": lambda s: not s.hidden_size,
    "defaults written down": lambda s: s.explicit,
    "constant weights": lambda s: s.weights == "initializer",
    "symbolic dimensions": lambda s: s.dimensions == "symbolic",
    "a later opset": lambda s: s.opset == "last",
    "a re-used session": lambda s: s.reruns != "none",
    "an earlier run of another size": lambda s: s.reruns in ("sizes", "growing"),
    "an earlier run that is larger": lambda s: s.reruns == "sizes",
    "an earlier run that is smaller": lambda s: s.reruns == "growing",
    "small numbers": lambda s: s.data == "small",
    "large numbers": lambda s: s.data == "large",
    "huge numbers": lambda s: s.data == "huge",
    "large weights": lambda s: s.data == "heavy",
    "numbers of few digits": lambda s: s.data == "exact",
    "numbers of one sign": lambda s: s.data == "one-sign",
    "one-step accuracy": lambda s: s.data == "numerics",
    "NaN in one row": lambda s: s.data == "nan-row",
    "infinity in one row": lambda s: s.data == "inf-row",
    "NaN in the padding": lambda s: s.data == "nan-padding",
    "activation_alpha": lambda s: s.alpha is not None,
    "activation_beta": lambda s: s.beta is not None,
    "a list of activations": lambda s: s.activations is not None,
    "seq_length 0": lambda s: s.T == 0,
    "batch_size 0": lambda s: s.N == 0,
    "output_sequence": lambda s: bool(s.output_sequence),
}


def _lengths(spec: Any) -> list[Any]:
    """Return the lengths of the rows in each run of a case: an error may lie in any of them."""
    return [feed.inputs.get("sequence_lens", np.full(spec.N, spec.T)) for feed in build_case(spec).trial.feeds]


def meets(probe: Probe, words: str) -> bool:
    """Return whether a condition of a finding is true of a case. Raise LookupError for text that cannot be checked."""
    spec: Any = getattr(getattr(probe, "probe", probe), "spec", None)
    # A trait may have the name of an attribute that its version knows, whether or not the case sets it.
    if spec is not None and words in _PLAIN:
        return bool(_PLAIN[words](spec))
    if value := next((value for value, phrase in PHRASES.items() if phrase == words), None):
        return bool(getattr(spec, value[0], None) == value[1])
    if words in {worded(trait) for trait in probe.traits}:
        return True
    if spec is None:
        return False
    condition = re.sub(r" \(passes with \d+\)$", "", words)
    if match := re.fullmatch(r"(\d+) to (\d+) ([\w ]+)", condition):
        return int(match[1]) <= getattr(spec, _COUNTS[match[3]]) <= int(match[2])
    if match := re.fullmatch(r"(exactly )?(\d+) ([\w ]+?)( or more)?", condition):
        size, number = getattr(spec, _COUNTS[match[3]]), int(match[2])
        return bool(size == number if match[1] else size >= number)
    if match := re.fullmatch(r"a multiple of (\d+) ([\w ]+)", condition):
        size = getattr(spec, _COUNTS[match[2]])
        return bool(size and size % int(match[1]) == 0)
    if match := re.fullmatch(r"activations ([\w/]+)", condition):
        return set(match[1].split("/")) <= set(spec.activations or ())
    if match := re.fullmatch(r"(outputs|no outputs but) ([\w, ]+)", condition):
        requested, names = set(filter(None, spec.outputs)), set(match[2].split(", "))
        return names <= requested if match[1] == "outputs" else names == requested
    if condition in ("float16", "float32", "float64", "bfloat16"):
        return bool(spec.type == condition)
    if condition.startswith(("version ", "uses ", "activations ")) or condition in _TRAITS:
        return False
    if (match := re.fullmatch(r"(\w+) (\S+)", condition)) and hasattr(spec, match[1]):
        return str(getattr(spec, match[1])) == match[2]
    raise LookupError(f"nobody can check the words {words!r}")


_OPERATORS = ("GRU", "LSTM", "RNN")
_TRAITS = {
    worded(feature.replace("-", " "))
    for op in _OPERATORS
    for version in versions_of(op)
    for feature in all_features(op, version)
}


def false_sentences(
    findings: Sequence[Finding], results: Sequence[Result], probes: Mapping[str, Probe], truth: Truth | None = None
) -> list[str]:
    """Return the false sentences in the findings of a target, a line each."""
    failing = {verdict.value for verdict in FAILING} - {Verdict.NOT_REJECTED.value}
    lines: list[str] = []
    for finding in findings:
        if finding["kind"] in failing:
            lines += [f"{finding['title']}: {why}" for why in _false(finding, results, probes, truth)]
    return lines


def _false(
    finding: Finding, results: Sequence[Result], probes: Mapping[str, Probe], truth: Truth | None
) -> Iterator[str]:
    for fault in _names(finding):
        if truth is not None and not truth.right(fault):
            yield f"{fault} is not what is wrong"
    unexplained = {r.case for r in results if finding["fault"] not in r.diagnosis} & {*finding["cases"]}
    if finding["foretold"] and unexplained and not finding["what"].startswith("Beside other faults: "):
        yield f"{finding['fault']} explains {len(unexplained)} of its cases not, e.g. {min(unexplained)}"
    words = finding["conditions"].split(" and ") if finding["conditions"] else []
    unmet = [c for c in finding["cases"] if not all(meets(probes[c], w) for w in words)]
    if unmet:
        yield f"{len(unmet)} of its cases lack a condition, e.g. {unmet[0]}"
    if words and "(seen with " not in finding["title"]:
        fault = fault_named(finding["fault"])
        right = [r for r in results if r.verdict is Verdict.PASS and r.op in finding["operators"]]
        passing = [probes[r.case] for r in right if r.case in probes and "unconventional" not in r.flags]
        passing = [p for p in passing if "illegal" not in p.features and all(meets(p, w) for w in words)]
        if isinstance(fault, Fault):
            passing = [p for p in passing if would_show(fault, p)]
        if passing:
            yield f"{len(passing)} cases that pass meet the conditions, e.g. {passing[0].id}"


def _names(finding: Finding) -> Iterator[str]:
    """Yield the fault that a finding names, or with which it is consistent."""
    if finding["fault"]:
        yield finding["fault"]
    elif "consistent with: " in finding["what"]:
        summary = finding["what"].partition("consistent with: ")[2]
        faults = [*FAULTS.values(), *scoped_of(iter(FAULTS.values()))]
        matches = (d for d in faults if d.summary.rstrip(".")[1:] == summary[1:])
        yield next((d.id for d in matches if d.summary[:1].lower() == summary[:1]), f"a fault that {summary}")


def _drawn(sample: int | None, seed: str) -> list[str]:
    """Return the names of subjects, ``sample`` of each kind."""
    dice = random.Random(seed)
    faults = [d.id for d in FAULTS.values() if d.kind not in ("accepts", "bias") and {*d.operators} & {*_OPERATORS}]
    pairs = ["+".join(dice.sample(faults, 2)) for _ in faults]
    drawn: list[str] = []
    for names in (faults, pairs, kernel_names(), zoo_names()):
        drawn += names if sample is None else dice.sample(names, min(sample, len(names)))
    return drawn


def _subjects(names: Sequence[str]) -> Iterator[tuple[str, Any, Truth | None]]:
    """Yield the subjects: name, target, and its faults, if these have ids."""
    for name in names:
        if name in TRUTHS:
            yield name, on_kernel(name), TRUTHS[name]
        elif ":" in name:
            yield name, on_zoo(name), None
        else:
            ids = name.split("+")
            patterns = tuple(pattern for id in ids for pattern in (id, f"{id}@*"))
            yield name, of_faults(ids), Truth(name, {"all": patterns})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--profile", default="smoke")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--budget", type=float, default=math.inf)
    parser.add_argument("--titles", action="store_true")
    options = parser.parse_args()
    specs = [
        spec
        for op in _OPERATORS
        for version in versions_of(op)
        for spec in profile(options.profile, op, version)
        if not spec.illegal
    ]
    count = false = 0
    names = options.names or _drawn(options.sample, options.seed)
    until = time.monotonic() + options.budget
    for name, opened, truth in itertools.takewhile(lambda _: time.monotonic() < until, _subjects(names)):
        findings, results, probes = findings_on(opened, specs)
        lines = false_sentences(findings, results, probes, truth)
        count, false = count + len(findings), false + len(lines)
        print(f"{name}: {len(findings)} findings, {len(lines)} false sentences", flush=True)
        if options.titles:
            lines = [*(f"- {f['title']}" for f in findings if f["kind"] != Verdict.UNSUPPORTED.value), *lines]
        for line in lines:
            print(f"  {line}", flush=True)
    print(f"{false} false sentences in {count} findings")
    return int(false > 0)


if __name__ == "__main__":
    sys.exit(main())
