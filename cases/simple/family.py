"""Cases derived from an operator's form: profiles, tensors, sessions, invalid models, features."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import FORMATS, IllegalNode, Node, clauses_of, evaluate_in_order, operator_version, resolve
from ...reference.documents.clauses import ILLEGAL
from ...reference.documents.tensors import Shape, TensorForm
from ...reference.faults.derived import in_ids
from ..axes.generator import Counter, uniform
from ..axes.node import by_position
from ..axes.violation import Violation
from ..profiles import written_cases
from ..profiles.random_cases import distinct
from ..specs.case import Case, Course, Feed, Step, Trial
from ..specs.family import Family, Level
from ..specs.features import commit, model_features
from ..specs.model import dtype_named, node_model
from .spec import DIMENSIONS, SESSIONS
from .violations import form_violations

Array = NDArray[Any]

_RANDOM = 100
"""Number of random cases that ``full`` has in addition to those of ``core``."""

_COMBINED = 40
"""Number of combinations of values in a derived ``core``."""


class SimpleFamily(Family):
    """Cases of an operator, derived from its form.

    axes
        Values of the spec's fields that cases combine. Axes that every operator has (`shared`) are not listed.
    constants
        Inputs that models mostly hold as initializers: weights.
    carried
        For an input, the output whose value it takes in the next run of a session.
    sequence
        The size in which runs of a session differ; empty for an operator without one.
    forbidden
        Invalid models beyond those that follow from the form.
    """

    axes: Mapping[str, Sequence[Any]] = {}
    constants: Collection[str] = ()
    carried: Mapping[str, str] = {}
    sequence: str = ""
    forbidden: Sequence[Violation] = ()

    def other_sizes(self, spec: Any, number: int) -> dict[str, int]:
        """Return sizes of the axes."""
        random = Random(f"{spec.op}/{number}")
        listed = {name: values for name, values in self.axes.items() if name in spec.sizes and getattr(spec, name)}
        sizes = {name: random.choice([value for value in values if value]) for name, values in listed.items()}
        settled = self.settled(replace(spec, **sizes))
        return {name: getattr(settled, name) for name in sizes}

    def legal(self, spec: Any) -> Any:
        """Return the legal case nearest to a spec; operators override this for their own constraints."""
        return spec

    def shape(self, spec: Any, form: TensorForm) -> tuple[int, ...]:
        """Return the shape of an input. If the document allows several, a field like ``decay_form`` selects one."""
        chosen = form.shape(1) if spec.selected_layout else form.shapes[getattr(spec, f"{form.name}_form", 0)]
        return tuple(extent.value(spec.sizes) for extent in chosen)

    def draw(self, spec: Any, name: str, shape: tuple[int, ...], key: str) -> Array:
        """Return the numbers of an input in float64 or its own type; by default full-precision numbers between -1 and
        1."""
        kind = spec.type_of(name)
        return uniform(key, shape, FORMATS[kind].precision if kind in FORMATS else 53, 0)

    def shared(self, op: str, version: int) -> Mapping[str, Sequence[Any]]:
        """Return the axes that every operator has."""
        operator = operator_version(op, version)
        optional = [n for n in operator.inputs if n not in operator.required and n not in operator.rules.needed]
        absent = dict.fromkeys([(), *((name,) for name in optional), tuple(optional)])
        return {
            "type": operator.types,
            "session": SESSIONS if self.sequence else ("one", "other-weights"),
            "weights": ("input", "initializer") if self.constants else ("input",),
            "dimensions": DIMENSIONS,
            "absent": tuple(absent),
        }

    def settled(self, spec: Any) -> Any:
        """Return the nearest case whose values fit together, shared fields included."""
        if spec.session == "other-weights":
            spec = replace(spec, weights="input")
        if spec.session not in ("one", "other-weights") and spec.dimensions == "static":
            spec = replace(spec, dimensions="symbolic")  # lengths differ
        if spec.session in ("chain", "cut"):
            spec = replace(spec, absent=tuple(name for name in spec.absent if name not in self.carried))
        return self.legal(spec)

    def profile(self, name: str, op: str, version: int) -> Iterable[Any]:
        """Return the cases of a profile: those of its file, or derived ones for operators of other distributions.

        Derived ``core`` has all small cases in all types, combinations of values, and each invalid model; ``smoke`` has
        few of the small ones in the spec's default type. ``full`` adds random cases, and invalid models in all types.
        """
        if name not in ("smoke", "core", "full"):
            return ()
        core = _core(self, op, version)
        if name == "core":
            return core
        if name == "smoke":
            small = (spec for spec in self._small(op, version) if spec.type == self.spec().type)
            return tuple(written_cases(name, op, version)) or (*small,)[::3]
        broken = (spec for spec in core if spec.illegal)
        others = [replace(spec, type=type) for spec in broken for type in self.shared(op, version)["type"][1:]]
        drawn = distinct(lambda key: self.random_case(op, key, version), f"full/{op}-{version}", {*core}.__contains__)
        return (*core, *(spec for spec, _ in zip(drawn, range(_RANDOM), strict=False)), *filter(self._breaks, others))

    def _small(self, op: str, version: int) -> Iterable[Any]:
        """Return the plain case and those that differ from it in one field, in each type."""
        plain, axes = self.settled(self.spec()), {**self.axes, **self.shared(op, version)}
        names = ("session", "weights", "absent", *operator_version(op, version).attributes)
        changes = [{}, *({name: value} for name in names if name in axes for value in axes[name])]
        changes.append({"session": "other-weights", "seed": 1})  # only this detects targets that keep old weights
        return dict.fromkeys(
            self.settled(replace(plain, type=type, **change)) for type in axes["type"] for change in changes
        )

    def _combined(self, op: str, version: int) -> Iterator[Any]:
        """Yield cases in which all values are drawn."""
        choose, axes = Counter.of(f"{op}-{version}"), {**self.axes, **self.shared(op, version)}
        for number in range(_COMBINED):
            drawn = {name: choose.one_of(values) for name, values in axes.items()}
            yield self.settled(replace(self.spec(), seed=number + 1, **drawn))

    def _invalid(self, op: str, version: int) -> Iterator[Any]:
        """Yield one invalid model for each violation."""
        for violation in self.violations(op, version):
            spec = replace(self.settled(replace(self.spec(), **violation.base)), illegal=violation.id)
            if violation.open or self._breaks(spec):
                yield spec

    def _breaks(self, spec: Any) -> bool:
        """Return whether a violation can be made and the document forbids the resulting model."""
        try:
            broken, inputs = self._broken(spec)
        except (KeyError, IndexError, ValueError):
            return False
        try:
            resolve(Node(broken.op_type, spec.version, broken.attributes, broken.outputs, broken.domain), inputs)
        except IllegalNode:
            return True
        except (KeyError, IndexError, TypeError, ValueError):
            return False  # the operator's own code does not handle such a node
        return False

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        """Return the violations: those of the form that a clause covers, and the family's own."""
        clauses = {clause.id for clause in clauses_of(op)}
        of_form = form_violations(op, operator_version(op, version))
        return (*(violation for violation in of_form if violation.clause(op) in clauses), *self.forbidden)

    def inputs(self, spec: Any, run: int = 0) -> dict[str, Array]:
        """Return the inputs of a run by formal name; the same bytes every time."""
        return _runs(self, replace(spec, illegal=""))[run]

    def _lengths(self, spec: Any) -> tuple[int, ...]:
        length = getattr(spec, self.sequence) if self.sequence else 0
        return {
            "one": (length,),
            "chain": (length, 1, 1, 1),
            "cut": (length - length // 2, length // 2),
            "other-lengths": (length, length + 3, 1),
            "other-weights": (length, length),
        }[spec.session]

    def drawn_runs(self, spec: Any) -> list[dict[str, Array]]:
        """Draw the inputs of all runs."""
        lengths = self._lengths(spec)
        continued = spec.session in ("chain", "cut")
        whole = replace(spec, **{self.sequence: sum(lengths)}) if continued else spec
        node, runs, start = spec.node, list[dict[str, Array]](), 0
        for run, length in enumerate(lengths):
            of_run = replace(spec, **{self.sequence: length}) if self.sequence else spec
            arrays = {}
            for name in spec.given:
                form = spec.operator.tensors[name]
                if name in self.carried and continued and run:
                    arrays[name] = self._handed_on(spec, node, runs[-1], name)
                    continue
                constant = name in self.constants and spec.session != "other-weights"
                number = 0 if continued or constant else run
                of = whole if continued else of_run
                array = self._tensor(of, form, f"{spec.op}/{name}/{spec.seed}/{number}")
                shape = form.shape(spec.selected_layout, array.ndim)
                arrays[name] = _part(array, shape, self.sequence, start, length) if continued else array
            runs.append(arrays)
            start += length
        for arrays in runs:
            for array in arrays.values():
                array.setflags(write=False)
        return runs

    def _tensor(self, spec: Any, form: TensorForm, key: str) -> Array:
        shape = self.shape(spec, form)
        numbers = self.draw(spec, form.name, shape, key)
        if numbers.shape != shape:
            raise ValueError(f"draw() gives {form.name} as {numbers.shape}, and by its form it is {shape}")
        return np.ascontiguousarray(numbers.astype(dtype_named(spec.type_of(form.name))))

    def _handed_on(self, spec: Any, node: Node, before: Mapping[str, Array], name: str) -> Array:
        state = evaluate_in_order(node, before)[self.carried[name]]
        return np.ascontiguousarray(state.astype(dtype_named(spec.type_of(name))))

    def _violation(self, spec: Any) -> Violation:
        return next(violation for violation in self.violations(spec.op, spec.version) if violation.id == spec.illegal)

    def _broken(self, spec: Any) -> tuple[Node, Mapping[str, Array]]:
        """Return a case's node and inputs with its violation. Raise KeyError or IndexError where it cannot be made."""
        return commit(self._violation(spec), replace(spec, illegal="").node, self.inputs(spec))

    def build(self, spec: Any) -> Case:
        """Return the built case; it has a companion if the case does not ask for the first output."""
        runs, node = _runs(self, replace(spec, illegal="")), replace(spec, illegal="").node
        legal = self._trial(spec, spec.id, node, runs)
        if not spec.illegal and node.operator.outputs[0] in node.outputs:
            return Case(spec, legal, None)
        companion = f"{spec.id}~companion"
        if not spec.illegal:
            everything = replace(node, outputs=node.operator.outputs)
            return Case(spec, legal, self._trial(spec, companion, everything, runs))
        broken, inputs = self._broken(spec)
        trial = replace(self._trial(spec, spec.id, broken, [inputs]), violation=self._violation(spec))
        return Case(spec, trial, replace(legal, key=companion))

    def _trial(self, spec: Any, key: str, node: Node, runs: Sequence[Mapping[str, Array]]) -> Trial:
        constants = frozenset(self.constants if spec.weights == "initializer" else ()) & runs[0].keys()
        symbolic = {
            "static": frozenset[str](),
            "symbolic": frozenset({"batch_size", self.sequence}),
            "all-symbolic": frozenset(spec.sizes),
        }[spec.dimensions]
        types = {name: _output_type(node, runs[0], name) for name in spec.operator.outputs}
        first = replace(spec, **{self.sequence: self._lengths(spec)[0]}) if self.sequence else spec
        operator = node.operator
        model = node_model(
            node,
            runs[0],
            by_position(operator.outputs, node.outputs),
            constants=runs[0],
            initializers=constants,
            symbolic=symbolic,
            sizes=first.sizes,
            like=operator.outputs[0],
            layout=int(node.attributes.get(operator.rules.layout) == 1),
            opset=operator.since_version,
            types=types,
            least_ir=8,
        )
        feeds = tuple(Feed(i, {name: a for name, a in i.items() if name not in constants}) for i in runs)
        steps = tuple(Step("run", 0, number) for number in range(len(feeds)))
        course = Course(frozenset({"weights"}), steps) if spec.session == "other-weights" else None
        return Trial(key, model, node, feeds, course=course)

    def features(self, spec: Any) -> frozenset[str]:
        if spec.illegal:
            return frozenset({"illegal", f"{ILLEGAL}{self._violation(spec).topic}"})
        used = model_features(spec.weights == "initializer", spec.dimensions != "static", spec.session != "one")
        sessions = {spec.session} - {"one"}
        return self.node_features(spec.node, self.inputs(spec)) | used | sessions

    def node_features(self, node: Node, inputs: Mapping[str, Array]) -> frozenset[str]:
        """Return features of a node with its inputs: type, optional inputs present or absent, attribute values, sizes
        of 0 and 1.

        Raise IllegalNode.
        """
        c: Any = resolve(node, inputs)
        operator = node.operator
        attributes = {**operator.defaults, **node.attributes}
        features = {c.format.name}
        for name in operator.inputs:
            if name not in operator.required:
                features.add(in_ids(name) if inputs.get(name) is not None else f"{in_ids(name)}-absent")
        for name in operator.rules.choices:
            features.add(f"{in_ids(name)}-{in_ids(str(attributes.get(name)))}")
        for size, value in c.sizes.items():
            if value in (0, 1):
                features.add(f"{in_ids(size)}-{'zero' if value == 0 else 'one'}")
        return frozenset(features)

    def all_features(self, op: str, version: int) -> frozenset[str]:
        return frozenset().union(*map(self.features, self.profile("core", op, version)))

    def content(self, spec: Any) -> Iterator[bytes]:
        """Yield the bytes that identify a case: the model and its inputs."""
        trial = self.build(spec).trial
        yield trial.model
        for feed in trial.feeds:
            yield from (array.tobytes() for _, array in sorted(feed.inputs.items()))

    def crossed(self, spec: Any, other: Any, names: Collection[str]) -> Any | None:
        """Return a case with some fields of another one; None where there is no such case."""
        made = super().crossed(spec, other, names)
        return None if made is None else self.settled(made)

    def levels(self, op: str, version: int) -> Sequence[Level]:
        return (
            Level("basic", "one run, sizes of at least 1", partial(_is_basic, sessions=("one",))),
            Level("sequence", "any session, sizes of at least 1", partial(_is_basic, sessions=SESSIONS)),
            Level("complete", "everything that the suite tries", lambda spec: True),
        )

    def goes_together(self, spec: Any) -> bool:
        return bool(self.settled(spec) == spec)


def _is_basic(spec: Any, sessions: Collection[str]) -> bool:
    return min(spec.sizes.values()) >= 1 and spec.session in sessions and spec.dimensions in DIMENSIONS[:2]


@cache
def _core(family: SimpleFamily, op: str, version: int) -> tuple[Any, ...]:
    """Return the cases of ``core``."""
    parts = (family._small(op, version), family._combined(op, version), family._invalid(op, version))
    return tuple(written_cases("core", op, version)) or tuple(dict.fromkeys(itertools.chain(*parts)))


@lru_cache(maxsize=512)
def _runs(family: SimpleFamily, spec: Any) -> tuple[dict[str, Array], ...]:
    return tuple(family.drawn_runs(spec))


def _part(array: Array, shape: Shape, sequence: str, start: int, length: int) -> Array:
    """Return the positions of one run."""
    axes = [axis for axis, extent in enumerate(shape) if extent.size == sequence]
    for axis in axes:
        array = np.ascontiguousarray(array.take(np.arange(start, start + length), axis))
    return array


def _output_type(node: Node, inputs: Mapping[str, Array], name: str) -> np.dtype[Any]:
    """Return the type of an output, also of an illegal node: that of the first input with the same type variable."""
    version = node.operator
    for kind in (version.kind_of(name), "T"):
        for candidate in version.inputs:
            if version.kind_of(candidate) == kind and candidate in inputs:
                return inputs[candidate].dtype
    return np.dtype(np.float32)
