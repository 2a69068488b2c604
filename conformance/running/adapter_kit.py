"""Test kit for adapters and for programs that speak the worker protocol.

In a test module of the package that brings an adapter::

    from onnxspec.conformance.running.adapter_kit import AdapterContract

    class TestMine(AdapterContract):
        target = "mine"                 # as for `onnxspec run --target`
        targets_file = "targets.toml"   # if that is a table in a file

Everything goes through a worker, as in a run. The kit tests what an adapter can spoil and a run does not show, with
tolerances that every runtime meets. A type that the runtime refuses is skipped; to refuse all of them fails.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from ...cases import CaseSpec, Trial, build_case
from ...reference import evaluate, operator_version
from ..probes.probe import job_of
from ..targets.adapters import EXTERNAL, adapter_source
from ..targets.target import Target, parse_target
from ..workers.job import Job, Outcome, TargetUnavailable
from ..workers.process import TargetProcess

TYPES = ("float32", "float16", "float64", "bfloat16")
_NEWEST = {"bfloat16": 22}
_GROSS = {"float64": 1e-3, "float32": 1e-2, "float16": 5e-2, "bfloat16": 0.2}
"""Distance from what is right that no runtime comes to, and every misread array does: states are within 1."""

_ASKED = ("runtime", "version", "provider", "device")


class AdapterContract:
    """Tests of one target; subclass it and name the target.

    target
        Its name, or a `Target`.
    targets_file
        The file that has its table, if any.
    op, version
        An operator version that it runs with plain inputs X, W and R.
    weights
        ``initializer`` if W and R must be constants of the model.
    """

    target: ClassVar[str | Target]
    targets_file: ClassVar[str | Path | None] = None
    op: ClassVar[str] = "LSTM"
    version: ClassVar[int] = 14
    weights: ClassVar[str] = "input"

    @cached_property
    def configuration(self) -> Target:
        """Configured target."""
        if isinstance(self.target, Target):
            return self.target
        return parse_target(self.target, Path(self.targets_file) if self.targets_file is not None else None)

    def trial(self, type: str = "float32") -> Trial:
        """Return a small node with all outputs and two feeds of different data."""
        version = max(self.version, _NEWEST.get(type, 0))
        outputs = tuple(operator_version(self.op, version).outputs)
        sizes: dict[str, Any] = {"T": 4, "N": 3, "I": 2, "H": 5}
        spec = CaseSpec(self.op, version, type=type, outputs=outputs, weights=self.weights, reruns="data", **sizes)
        return build_case(spec).trial

    @pytest.fixture
    def process(self) -> Iterator[TargetProcess]:
        """Yield the target at work."""
        with TargetProcess(self.configuration) as process:
            process.start()
            yield process

    def run(self, process: TargetProcess, *jobs: Job) -> list[Outcome]:
        """Return the outcomes of jobs. Skip the test if the first one is refused."""
        outcomes = list(process.run(jobs))
        if outcomes[0].status == "refused":
            pytest.skip(f"refused in phase {outcomes[0].phase}: {outcomes[0].message}")
        return outcomes

    def test_it_describes_itself(self) -> None:
        with TargetProcess(self.configuration) as process:
            first = process.start()
            second = process.start()
        json.dumps(first, allow_nan=False)
        missing = [key for key in _ASKED if not isinstance(first.get(key), str)]
        assert not missing, f"describe() says no {missing[0]}; it must be a text, empty where there is nothing to say"
        assert first["runtime"], "describe() has no runtime: findings and expected failures go by its name"
        assert first["version"], "describe() has no version: results of two versions could not be told apart"
        assert first == second, "describe() says something else each time: --resume would take it for another runtime"

    def test_it_refuses_an_unknown_option(self) -> None:
        options = {**self.configuration.options, "no_such_option": 1}
        reason = ""
        with TargetProcess(replace(self.configuration, options=options)) as process:
            try:
                process.start()
            except TargetUnavailable as error:
                reason = str(error)
        assert reason, "it ignores an option that it does not know: a misspelt one would go unnoticed"
        assert "no_such_option" in reason, f"the reason does not name the option: {reason}"

    def test_it_runs_some_type(self, process: TargetProcess) -> None:
        """At least one type runs; refused types are skipped."""
        outcomes = list(process.run([job_of(self.trial(type)) for type in TYPES]))
        assert any(outcome.status != "refused" for outcome in outcomes), (
            f"it refuses {self.op}-{self.version} in every type ({outcomes[0].message}); op, version and weights say "
            "what it can run"
        )

    @pytest.mark.parametrize("type", TYPES)
    def test_arrays_go_in_and_come_out(self, process: TargetProcess, type: str) -> None:
        """Types, shapes, order of outputs, and numbers that are not misread."""
        trial = self.trial(type)
        (outcome,) = self.run(process, job_of(trial))
        lists = _ran(outcome)
        names = [value.name for value in onnx.load_model_from_string(trial.model).graph.output]
        for feed, outputs in zip(trial.feeds, lists, strict=True):
            must = evaluate(trial.node, feed.inputs)
            assert len(outputs) == len(names), f"{len(outputs)} outputs, must be {', '.join(names)}"
            for name, array in zip(names, outputs, strict=True):
                assert array is not None, f"{name} is no array of numbers"
                assert array.dtype.name == type, f"{name} is {array.dtype.name}, must be {type}"
                assert array.shape == must[name].shape, f"{name} is {array.shape}, must be {must[name].shape}"
                worst = float(np.max(np.abs(array.astype(np.float64) - must[name]), initial=0.0))
                assert worst <= _GROSS[type], f"{name} is {worst:.3g} away from what is right: misread on its way"

    def test_inputs_go_by_name_and_outputs_by_the_graphs_order(self, process: TargetProcess) -> None:
        trial = self.trial()
        model = onnx.load_model_from_string(trial.model)
        for values in (model.graph.input, model.graph.output):
            turned = list(values)[::-1]
            del values[:]
            values.extend(turned)
        job = job_of(trial)
        turned_job = Job("turned", model.SerializeToString(), tuple(dict(reversed(list(f.items()))) for f in job.feeds))
        plain, other = self.run(process, job, turned_job)
        for outputs, turned_outputs in zip(_ran(plain), _ran(other), strict=True):
            assert _bits(outputs) == _bits(turned_outputs[::-1]), (
                "with inputs and outputs of the graph in another order the results are others: inputs must go by name, "
                "outputs must come in the order of the graph's, not of the node's"
            )

    def test_what_cannot_run_is_refused_and_nothing_is_lost(self, process: TargetProcess) -> None:
        job = job_of(self.trial())
        without = {name: array for name, array in job.feeds[0].items() if name != "X"}
        bad = {
            "bytes that are no model": Job("a", b"no model", job.feeds),
            "an operator that does not exist": Job("b", _unknown_operator(job.model), job.feeds),
            "an input that is missing": Job("c", job.model, (without,)),
        }
        before, *refused, after = self.run(process, job, *bad.values(), job)
        for what, outcome in zip(bad, refused, strict=True):
            assert outcome.status == "refused", f"{what}: {outcome.status} in place of refused: {outcome.message}"
            assert outcome.phase in ("load", "run")
            assert outcome.message, f"{what}: refused without a reason"
            assert outcome.message.isprintable(), f"{what}: the reason is no plain line"
        phase = refused[0].phase
        assert phase == "load", f"bytes that are no model are refused in phase {phase}: prepare() must say so"
        assert _bits(_ran(before)[0]) == _bits(_ran(after)[0]), "after refusals the results are others"

    def test_its_source_stands_alone(self) -> None:
        """The source runs in interpreters without onnxspec."""
        if self.configuration.adapter == EXTERNAL:
            pytest.skip("a program of its own")
        tree = ast.parse(adapter_source(self.configuration.adapter))
        names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        relative = [ast.unparse(node) for node in froms if node.level]
        assert not relative, f"a relative import cannot be carried out where the source is sent: {relative[0]}"
        own = [name for name in (*names, *(node.module or "" for node in froms)) if name.split(".")[0] == "onnxspec"]
        assert not own, f"it imports {own[0]}, which is not there where the source is sent"


def _ran(outcome: Outcome) -> list[tuple[NDArray[Any] | None, ...]]:
    """Return the outputs for each feed of a job that must have run."""
    assert outcome.status == "ran", f"{outcome.status} in phase {outcome.phase}: {outcome.message}"
    assert not outcome.malformed, f"the form of the outputs is wrong: {outcome.malformed}"
    for distinct in outcome.outputs:
        assert len(distinct) == 1, "two runs on the same inputs give different bits"
    return [distinct[0] for distinct in outcome.outputs]


def _bits(outputs: tuple[NDArray[Any] | None, ...]) -> list[tuple[str, tuple[int, ...], bytes] | None]:
    return [None if array is None else (array.dtype.name, array.shape, array.tobytes()) for array in outputs]


def _unknown_operator(model: bytes) -> bytes:
    proto: Any = onnx.load_model_from_string(model)
    proto.graph.node[0].op_type = "NoSuchOperator"
    changed: bytes = proto.SerializeToString()
    return changed
