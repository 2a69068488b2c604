"""Trees of generated test-case directories, their manifest, and which cases a fixed tolerance judges fairly.

A runner without error bounds compares each output with one expected number within ATOL + RTOL |expected|. It does not
know interpretations, conventions or undefined elements.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Expectation, expect
from ...reference.errors import UserError, format_internal_error
from ...reference.numbers.bounded import RADIUS_SLACK
from ...reference.operators.asking import returned_in_order
from ..specs.case import Case, Feed, Spec, Trial
from ..specs.family import build_case, clauses_exercised
from .directory import ATOL, RTOL, DataSet, write_directory


class Fairness(Struct, frozen=True):
    """Objections to judging a case with a fixed tolerance.

    interpretations
        Names of the interpretations on which its outputs depend.
    open
        Ids of its clauses that are conventions or ambiguous in the document.
    largest
        The maximum, over all elements of all data sets, of (radius + distance between the rounded expected number and
        the true one) / (ATOL + RTOL |expected|). If it is at most 1, no conforming implementation of the class fails.
    output
        Name of the output with the maximum.
    unknown
        Number of elements without an expected number: undefined or not finite.
    """

    interpretations: tuple[str, ...]
    open: tuple[str, ...]
    largest: float
    output: str | None
    unknown: int

    @property
    def reason(self) -> str:
        """The reason why the case is left out; empty for a fair one."""
        reasons = []
        if self.interpretations:
            reasons.append(f"more than one interpretation is right: {', '.join(self.interpretations)}")
        if self.open:
            reasons.append(f"rests on questions that the document leaves open: {', '.join(self.open)}")
        if self.unknown:
            reasons.append(f"{self.unknown} elements have no number that can be expected")
        if not self.largest <= 1:
            reasons.append(f"a correct {self.output} may differ by {self.largest:.3g} times the runner's tolerance")
        return "; ".join(reasons)


def data_sets_of(trial: Trial, *, outputs: bool = True) -> list[DataSet]:
    """Return the inputs of each run with the reference's outputs, each number rounded once to its type.

    outputs
        Whether to compute outputs.
    """
    subject = trial.subject

    def expected(feed: Feed) -> Mapping[str, NDArray[Any]]:
        tensors = subject.answered(feed.inputs, lambda bound, inputs: returned_in_order(bound.node, inputs))
        return {name: tensors[name] for name in subject.shown}

    return [DataSet(_in_order(trial, feed), expected(feed) if outputs else {}) for feed in trial.feeds]


def _in_order(trial: Trial, feed: Feed) -> Mapping[str, NDArray[Any]]:
    """Return the fed inputs in the graph's order. A runner matches inputs by position, so if one default is fed, all
    are."""
    if len(feed.fed) == len(feed.inputs):
        return feed.fed
    graph = onnx.load_model_from_string(trial.model).graph
    defaults = {tensor.name for tensor in graph.initializer}
    if not defaults & feed.fed.keys():
        return feed.fed
    everything = {**feed.inputs, **feed.fed}
    return {value.name: everything[value.name] for value in graph.input}


def fairness_of(case: Case, data_sets: Sequence[DataSet], accuracy: str = "standard") -> Fairness:
    """Return the objections to judging a case by the tolerance of onnx.backend.test, for an accuracy class.

    data_sets
        The case's data sets, one for each run.

    The radius is that of a free run, from the inputs only, because such a runner compares only outputs.
    """
    largest, output, unknown = 0.0, None, 0
    for feed, data in zip(case.trial.feeds, data_sets, strict=True):
        for expectation in expect(case.trial.node, feed.inputs, {}, accuracy):
            share, undefined = _share(expectation, data.outputs[expectation.output])
            unknown += undefined
            if share > largest or output is None:
                largest, output = share, expectation.output
    clauses = (c for c in clauses_exercised(case.spec) if not c.may_fail)
    named = tuple(c.id for c in clauses if c.interpretation is None)
    return Fairness(tuple(sorted(case.trial.open_questions)), named, largest, output, unknown)


def _share(expectation: Expectation, given: NDArray[Any]) -> tuple[float, int]:
    """Return the largest share of the tolerance that an expectation uses, and the number of its undefined elements."""
    number, expected = expectation.number, given.astype(np.float64)
    defined = np.isfinite(expected) & (np.abs(number.value) + number.radius < number.budget.tensor.largest)
    if number.doubt is not None:
        defined &= ~number.doubt
    mask = np.ones(expected.shape, bool) if expectation.about is None else expectation.about
    with np.errstate(invalid="ignore", over="ignore"):
        share = number.radius * RADIUS_SLACK + np.abs(expected - number.value)
        share /= ATOL + RTOL * np.abs(expected)
    return float(share[mask & defined].max(initial=0.0)), int((mask & ~defined).sum())


MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
"""File with the checksums of all files of cases, in the format of sha256sum."""

LICENCE = "Apache-2.0"
SCHEMA = 1

# Unfinished folders begin like this; a killed process may leave them.
_ASIDE = ".onnxspec-"

# Accuracy class for which a case must be fair: that of a target that declares none.
ACCURACY = "standard"


NOT_BUILT = "not built, which is the suite's fault or the operator's: "
"""Beginning of the reason for cases that an exception left out."""


def folder_name(spec: Spec) -> str:
    """Return the folder name of a case. onnx.backend.test accepts only names that begin with ``test_``."""
    return f"test_{spec.id}"


def generate(
    folder: Path, specs: Iterable[Spec], made: Mapping[str, Any], *, everything: bool = False
) -> dict[str, Any]:
    """Write cases as test-case directories into a new or empty folder, with a manifest and checksums; return the
    manifest.

    made
        Origin of the tree: the ``command`` that makes the same one (its folder argument is written as DIR), the version
        of ``onnxspec``, the ``profile`` from which cases were selected, and its ``digests`` by operator version.
    everything
        Also write cases that a fixed tolerance does not judge fairly.

    All files are written to a temporary folder first, so that a failure leaves the folder unchanged. Raise UserError
    for a folder that is not empty; OSError where it cannot be written.
    """
    if folder.exists() and not (folder.is_dir() and all(p.name.startswith(_ASIDE) for p in folder.iterdir())):
        raise UserError(f"{folder} already holds something: give a new or empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=folder))
    try:
        manifest = _write(aside, specs, made, everything)
        files = {path: digest for entry in manifest["cases"] for path, digest in entry["files"].items()}
        (aside / SUMS).write_text("".join(f"{digest}  {path}\n" for path, digest in files.items()), encoding="utf-8")
        text = json.dumps(manifest, indent=1, allow_nan=False) + "\n"
        (aside / MANIFEST).write_bytes(text.encode())
        # The manifest comes last: if it exists, all files that it lists exist.
        for name in (*(entry["folder"] for entry in manifest["cases"]), SUMS, MANIFEST):
            os.replace(aside / name, folder / name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return manifest


def _write(folder: Path, specs: Iterable[Spec], made: Mapping[str, Any], everything: bool) -> dict[str, Any]:
    written, left_out = [], []
    for spec in specs:
        identity = {"case": spec.id, "op": spec.op, "version": spec.version, "type": spec.type}
        try:
            entry = _entry(folder, spec, everything)
        except OSError:
            raise
        except Exception as error:  # an error of the suite or of an operator costs only this case
            shutil.rmtree(folder / folder_name(spec), ignore_errors=True)
            entry = f"{NOT_BUILT}{format_internal_error(error)}"
        if isinstance(entry, str):
            left_out.append({**identity, "reason": entry})
        else:
            written.append({**identity, **entry})
    manifest = {
        "schema": SCHEMA,
        "licence": LICENCE,
        "made": dict(made),
        "tolerance": {"rtol": RTOL, "atol": ATOL},
        "accuracy": ACCURACY,
        "cases": written,
        "left_out": left_out,
    }
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return {**manifest, "sha256": hashlib.sha256(canonical.encode()).hexdigest()}


def _entry(folder: Path, spec: Spec, everything: bool) -> dict[str, Any] | str:
    """Write a case and return its entry in the manifest, or the reason why it is left out."""
    if spec.illegal:
        return "the document forbids the model: there are no outputs to expect"
    case = build_case(spec)
    if case.trial.course is not None:
        return "its sessions do more than run one data set after the other, which no directory can say"
    if case.trial.graph is not None:
        return "its model has several nodes, and a directory says of one what its results may be"
    data_sets = data_sets_of(case.trial)
    fairness = fairness_of(case, data_sets, ACCURACY)
    if fairness.reason and not everything:
        return fairness.reason
    name = folder_name(spec)
    paths = write_directory(folder / name, case.trial.model, data_sets)
    files = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return {
        "folder": name,
        "clauses": [clause.id for clause in clauses_exercised(spec)],
        "accuracy": ACCURACY,
        # Three digits, and none below a millionth: the last digits of a radius depend on the machine's matrix product.
        "radius": {"output": fairness.output, "of_tolerance": round(float(f"{fairness.largest:.3g}"), 6)},
        "fair": not fairness.reason,
        **({"reason": fairness.reason} if fairness.reason else {}),
        "spec": spec.to_json(),
        "files": files,
    }
