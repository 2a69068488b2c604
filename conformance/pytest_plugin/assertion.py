"""Assertions for tests that users write: do these outputs conform? Does this target?

::

    from onnxspec import assert_conforms

    def test_my_kernel():
        assert_conforms(model, my_outputs, inputs=my_inputs)

    def test_my_backend():
        assert_conforms(CaseSpec("GRU", 14, T=3), my_backend)

    def test_my_runtime(onnxspec_target):
        onnxspec_target.assert_conforms(model, my_inputs)
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Union

import onnx
from numpy.typing import NDArray

from ...cases import Spec, Trial, is_spec, profile
from ...cases.directories.graph_reading import read_model, read_node_graph, trials_of
from ...cases.directories.reading import NotOneNode
from ...cases.portable import case_text
from ...reference import IllegalNode, operator_names, resolve
from ..judging.judgement import DECLINED, FAILING, UNTRIED, Judgement, Verdict, not_judged
from ..probes.probe import Probe, SpecProbe, job_of, prepared_trials
from ..probes.selection import Selection, select_probes
from ..probes.stream import judged, made_ready
from ..results.wording import failure_text, how_to_mend
from ..targets.target import Target
from ..workers.in_process import Runner, is_runner, run_in_process
from ..workers.process import Outcome, TargetProcess, TargetUnavailable

Arrays = Mapping[str, NDArray[Any]]
Subject = Union[Spec, str, bytes, onnx.ModelProto, "os.PathLike[str]"]
"""Case, a text that names it (id, JSON, or the path of a test-case directory), or a model of one recurrent node: bytes,
ModelProto, or path."""


class NotConforming(AssertionError):
    """Outputs differ from the specification; the message says which, where, and by how much.

    ``judgement`` is the verdict with its reasons.
    """

    def __init__(self, text: str, judgement: Judgement) -> None:
        super().__init__(text)
        self.judgement = judgement


class NotJudged(RuntimeError):
    """An exception in onnxspec or in the operator's own code, so the outputs could not be judged; the message has the
    exception and its place.

    ``judgement`` is the verdict with its reasons.
    """

    def __init__(self, judgement: Judgement) -> None:
        super().__init__(f"{judgement.verdict.value} ({judgement.reason}): {judgement.message}")
        self.judgement = judgement


def assert_conforms(
    subject: Subject,
    outputs: Arrays | Sequence[NDArray[Any]] | Runner | RunningTarget,
    inputs: Arrays | Sequence[NDArray[Any]] | None = None,
    *,
    accuracy: str = "standard",
) -> None:
    """Check that outputs are those that the specification of a model's operator requires.

    subject
        A case, its id, its JSON or a test-case directory, or a model with one recurrent node beside constants: bytes,
        ModelProto, or path. A text that ends in ``.onnx`` is the path of a model.
    outputs
        All outputs of the graph, by name or in the graph's order; bfloat16 as the type of ml_dtypes. Or their source: a
        function of the serialized model and a dictionary of its inputs; a class or module with the functions of
        ``onnx.backend.base.Backend``; or a RunningTarget.
    inputs
        The graph's inputs, by name or in the graph's order. A case has its own; a model needs them.
    accuracy
        Name of the accuracy class to judge by. A RunningTarget has its own.

    A function or backend runs in this process, twice for each of a case's runs, and once more with all outputs if the
    case does not ask for Y; its exceptions are raised.

    Raise NotConforming; NotJudged if an operator's own code fails; ValueError (NotOneNode, IllegalNode or UnknownName)
    for a subject that cannot be judged.
    """
    __tracebackhide__ = True
    if isinstance(outputs, RunningTarget):
        outputs.assert_conforms(subject, inputs)
        return
    trials = _trials_of(subject, inputs)
    if is_runner(outputs):
        became = [run_in_process(outputs, trial) for trial in trials]
    else:
        # A case is judged by its last run; those before only leave traces in a session.
        trials = (replace(trials[0], feeds=trials[0].feeds[-1:]),)
        shown = onnx.load_model_from_string(trials[0].model).graph.output
        given = _by_name(outputs, shown, "output")
        became = [Outcome(trials[0].key, "ran", "run", ((tuple(given[value.name] for value in shown),),))]
    _conclude(trials, became, accuracy, subject)


class RunningTarget:
    """Target in a process of its own; a context manager. The fixture ``onnxspec_target`` is one."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.description: dict[str, Any] = {}
        self._process = TargetProcess(target)

    def __enter__(self) -> RunningTarget:
        """Start the target. Raise TargetUnavailable, with the remedy in its message."""
        try:
            self.description = self._process.start()
        except TargetUnavailable as error:
            raise TargetUnavailable(how_to_mend(self.target, error), error.captured) from None
        return self

    def __exit__(self, *error: object) -> None:
        self._process.close()

    @property
    def name(self) -> str:
        """The user's name for it."""
        return self.target.name

    def assert_conforms(self, subject: Subject, inputs: Arrays | Sequence[NDArray[Any]] | None = None) -> None:
        """Run a model or a case on the target, twice, and check the outputs.

        Arguments as for :func:`assert_conforms`. Raise NotConforming also if the target refuses.
        """
        __tracebackhide__ = True
        trials = _trials_of(subject, inputs)
        outcomes = list(self._process.run(map(job_of, trials)))
        _conclude(trials, outcomes, self.target.accuracy, subject, self.name)

    def run(self, subject: Subject, inputs: Arrays | Sequence[NDArray[Any]] | None = None) -> dict[str, NDArray[Any]]:
        """Return the outputs of a model or a case by name. Raise NotConforming if there are none."""
        __tracebackhide__ = True
        trial = _trials_of(subject, inputs)[0]
        (outcome,) = self._process.run([job_of(trial)])
        if outcome.status != "ran":
            _conclude((trial,), (outcome,), self.target.accuracy)
        shown = onnx.load_model_from_string(trial.model).graph.output
        arrays = outcome.outputs[-1][0]
        return {value.name: array for value, array in zip(shown, arrays, strict=False) if array is not None}


def _conclude(
    trials: tuple[Trial, ...],
    outcomes: Sequence[Outcome],
    accuracy: str,
    subject: Subject | None = None,
    target: str = "",
) -> None:
    """Judge the outcomes of trials. Raise NotConforming if they do not conform."""
    __tracebackhide__ = True
    prepared = prepared_trials(trials)
    judgement = judged(prepared.judge, outcomes, accuracy)
    if judgement.verdict is Verdict.NOT_JUDGED:
        raise NotJudged(judgement)
    if judgement.verdict in FAILING | DECLINED | UNTRIED:
        repeat = _how_to_repeat(subject, trials[0].key, target)
        text = failure_text(prepared, outcomes, judgement, accuracy=accuracy, repeat=repeat)
        raise NotConforming(text, judgement)
    if judgement.verdict is Verdict.INCONCLUSIVE:
        warnings.warn(f"{trials[0].key}: {judgement.message}", stacklevel=3)


def _how_to_repeat(subject: Subject | None, key: str, target: str) -> str:
    """Return the command that shows a case on a target; without a target, the text that names the case."""
    spec = subject if is_spec(subject) else None
    if spec is not None:
        name = key if spec in profile("core", spec.op, spec.version) else case_text(spec)
    elif isinstance(subject, (str, os.PathLike)) and _is_case(subject):
        name = os.fspath(subject)
    else:
        return ""
    return shlex.join(["onnxspec", "explain", name, "--target", target]) if target else name


def _is_case(subject: Any) -> bool:
    """Return whether a subject names a case, and is not the path of a model."""
    if isinstance(subject, os.PathLike):
        return os.path.isdir(subject)
    return isinstance(subject, str) and not subject.endswith(".onnx")


def _trials_of(subject: Subject, inputs: Arrays | Sequence[NDArray[Any]] | None) -> tuple[Trial, ...]:
    """Return the trial of a model, and its companion if Y is not among its outputs."""
    if is_spec(subject) or _is_case(subject):
        if inputs is not None:
            raise ValueError("a case has its own inputs")
        probe: Probe
        if is_spec(subject):
            probe = SpecProbe(subject)
        else:
            name = subject if isinstance(subject, str) else os.path.join(os.curdir, str(subject))
            (probe,) = select_probes(Selection(cases=(name,)), operator_names(""))
        prepared = made_ready(probe)
        if not prepared.jobs:
            raise NotJudged(prepared.judge((), ""))
        if not prepared.trials:
            raise NotOneNode(f"{probe.id}: holds no recurrent node that can be judged alone")
        return prepared.trials
    model = subject if isinstance(subject, bytes) else bytes(_proto(subject).SerializeToString())
    one = read_model(model)
    if inputs is None:
        raise ValueError("a model is judged with the inputs that it was fed: give inputs")
    graph = onnx.load_model_from_string(model).graph
    used = [value for value in graph.input if value.name in one.inputs.values()]
    defaults = {name for formal, name in one.inputs.items() if formal in one.constants}
    fed = _by_name(inputs, used, "input", defaults)
    try:
        resolve(one.node, one.bind(fed))
    except IllegalNode:
        raise
    except Exception as error:  # whatever it is, it is ours or the operator's
        raise NotJudged(not_judged(error, "judging")) from error
    return trials_of(graph.name or "model", model, read_node_graph(model), [fed])


def _proto(subject: Any) -> onnx.ModelProto:
    if isinstance(subject, onnx.ModelProto):
        return subject
    try:
        return onnx.load(os.fspath(subject))
    except OSError as error:
        raise NotOneNode(f"{subject}: cannot be read: {error.strerror or error}") from None


def _by_name(
    arrays: Arrays | Sequence[NDArray[Any]],
    values: Iterable[onnx.ValueInfoProto],
    what: str,
    optional: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """Return arrays by name. Raise ValueError for names that the graph does not have, and for missing ones."""
    names = [value.name for value in values]
    if not isinstance(arrays, Mapping):
        arrays = list(arrays)
        needed = [name for name in names if name not in optional] if len(arrays) < len(names) else names
        if len(arrays) != len(needed):
            raise ValueError(f"{len(arrays)} {what}s are given, the graph has {len(names)}: {', '.join(names)}")
        return dict(zip(needed, arrays, strict=True))
    for name in arrays:
        if name not in names:
            raise ValueError(f"the graph has no {what} {name!r}; it has {', '.join(names)}")
    missing = [name for name in names if name not in arrays and name not in optional]
    if missing:
        raise ValueError(f"no {what} {', '.join(missing)} is given")
    return dict(arrays)
