"""Choose the dense block: `python -m benchmarks.pool.choose` writes cases/profiles/pool.json.

Draws the pool, measures what each case shows, and orders it greedily by the faults that a case is the first to show,
level by level: each level's own space is covered before the next wider one adds to it. The widest level begins with
what the plain cases of ``core`` show, and its cases are exchanged as long as all together gain by it. Of levels that
are drawn many times only those cases are measured that are likely to show what no other does (:mod:`.promising`). To
be run, and the profiles to be pinned again, when the space, the parts or the contexts are meant to change.

Last stand the places of float16.json: cases for targets of float16 alone, which were found by further draws of the same
levels. They are kept as places, and measured anew where a pool has lost them; another search may find better ones.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, Spec, family_of, operator_versions, profile
from onnxspec.cases.profiles.dense import supports
from onnxspec.cases.profiles.partial import SELDOM_LACKED, VARIED
from onnxspec.cases.profiles.pool import Pooled, pool_of
from onnxspec.cases.profiles.turns import EVENTS, FIRST_EVENT, FIRST_TURN, TURNS
from onnxspec.cases.specs.family import PoolDesign, pooled_operators
from onnxspec.conformance.proof.exposure import Shown, measure, parts_shown
from onnxspec.conformance.proof.interactions import Tally, faults_of, measurable, pool_tally, shown_by, space_of, tally
from onnxspec.conformance.workers.pool import spread
from onnxspec.reference import operator_of

from .chooser import Candidate, Chooser
from .promising import promising, telling


def design_of(op: str) -> PoolDesign:
    """The design by which the pool of an operator is drawn. Raises KeyError for one that has none."""
    design = family_of(op).pool_design(op)
    if design is None:
        raise KeyError(op)
    return design


def drawn(op: str) -> Iterator[tuple[tuple[str, int, int], Spec]]:
    """The places of an operator's pool, with their cases."""
    design = design_of(op)
    for level, count in design.drawn.items():
        for index in range(count):
            for number in range(design.siblings[level] + 1):
                spec = family_of(op).pooled(op, level, index, number)
                if spec is not None:
                    yield (level, index, number), spec


def candidates(op: str, measured: Sequence[tuple[tuple[str, int, int], Spec, Mapping[str, Shown]]]) -> list[Candidate]:
    """Measured cases with the faults that they show."""
    faults, tally = faults_of(op), Tally(op)
    alone, together = np.flatnonzero(faults.alone), np.flatnonzero(faults.together)
    made = []
    for place, spec, shown in measured:
        pairs, triples = tally.of(spec, shown)
        made.append(Candidate(place, spec, shown, pairs.ravel()[alone], np.packbits(triples.ravel()[together])))
    return made


def chosen(
    pool: Sequence[Candidate], design: PoolDesign, before: NDArray[np.uint8] | None = None, kept: Collection[int] = ()
) -> tuple[list[int], list[int], list[int]]:
    """Places in the pool: the dense block of core in order, those of them for smoke, and all others in order.

    before
        The triples that core's other cases show, as bits.
    kept
        Places that are chosen in any case.
    """
    block = Chooser(pool)
    for k in kept:
        block.choose(k)
    *narrow, widest = design.models
    for level in narrow:
        share = design.cases * design.models[level] // sum(design.models.values())
        there = {case.model: case.cost for k in kept if (case := pool[k]).place[0] == level}
        fresh = share - sum(pool[k].place[0] == level for k in kept)
        block.run(lambda c, level=level: c.place[0] == level, design.models[level] - sum(there.values()), fresh)  # type: ignore[misc]
    if before is not None:
        block.before = before
        block.triples |= before
    last = frozenset({widest, *design.many})
    telling = _Telling()
    all_models = sum(design.models.values())
    block.run(lambda c: c.place[0] in last and telling(c), all_models - block.cost, design.cases - len(block.chosen))
    fixed = {pool[k].place for k in kept}
    block.exchange(lambda c: c.place[0] in last and c.place not in fixed and telling(c), all_models)
    quick, places = Chooser(pool), {pool[k].place for k in block.chosen}
    quick.run(lambda case: case.place in places and case.cost == 1, design.quick, design.quick)
    rest = [k for k in range(len(pool)) if k not in block.chosen]
    return block.chosen, quick.chosen, rest


class _Telling:
    """Whether enough of a case's elements are judged where all is right; looked at once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], bool] = {}

    def __call__(self, case: Candidate) -> bool:
        if case.place not in self._known:
            self._known[case.place] = telling(case.spec)
        return self._known[case.place]


def written(
    op: str, pool: Sequence[Candidate], before: NDArray[np.uint8] | None = None, kept: Collection[int] = ()
) -> dict[str, Any]:
    """The pool of an operator as pool.json has it."""
    parts = [part.id for part in operator_of(op).parts()]
    block, quick, rest = chosen(pool, design_of(op), before, kept)

    return {
        "parts": parts,
        "pinned": len(block),
        "quick": [block.index(k) for k in quick],
        "cases": [_row(op, pool[k]) for k in (*block, *rest)],
    }


def _row(op: str, case: Candidate) -> list[Any]:
    """A case as a row of pool.json."""
    parts = [part.id for part in operator_of(op).parts()]

    def bits(there: Callable[[Shown], bool]) -> str:
        return f"{sum(1 << k for k, id in enumerate(parts) if id in case.shown and there(case.shown[id])):x}"

    several = len(space_of(op).halves(case.spec))
    halves = range(several if several > 1 else 0)
    there = [sum(1 << k for k in np.flatnonzero(held).tolist()) for held in space_of(op).held(case.spec)]
    return [
        *case.place,
        case.spec.version,
        case.cost,
        ".".join(f"{contexts:x}" for contexts in there),
        bits(lambda shown: shown.whole),
        *(bits(lambda shown, d=d: shown.halves[d]) for d in halves),  # type: ignore[misc]
    ]


_FLOAT16 = Path(__file__).with_name("float16.json")
_PATH = Path(str(resources.files("onnxspec.cases.profiles").joinpath("pool.json")))

Place = tuple[str, int, int]
Measured = tuple[Place, Spec, Mapping[str, Shown]]


def _measured(item: tuple[Place, Spec]) -> Measured:
    return (*item, parts_shown(item[1]))


def _all_measured(op: str, known: Mapping[Place, Pooled], processes: int) -> list[Measured]:
    """The pool of an operator with what each case shows, but for levels that are drawn many times; of known cases as it
    is pinned."""
    parts = tuple(part.id for part in operator_of(op).parts())
    there = list(drawn(op))
    fresh = iter(list(spread(_measured, [item for item in there if item[0] not in known], processes)))
    return [(place, spec, shown_by(known[place], parts)) if place in known else next(fresh) for place, spec in there]


def _further(op: str, shown: NDArray[np.bool_], processes: int) -> list[Measured]:
    """The promising cases of levels that are drawn many times."""
    design = design_of(op)
    items = [
        ((level, index, number), spec)
        for level, count in design.many.items()
        for index in range(count)
        for number in range(design.siblings[level] + 1)
        if (spec := family_of(op).pooled(op, level, index, number)) is not None and telling(spec)
    ]
    places = promising(op, [spec for _, spec in items], shown, design.measured)
    return list(spread(_measured, [items[k] for k in places], processes))


def _made(op: str, keep: bool, processes: int) -> dict[str, Any]:
    """The pool of an operator, drawn and chosen."""
    parts = tuple(part.id for part in operator_of(op).parts())
    there = pool_of(op) if op in json.loads(_PATH.read_text(encoding="utf-8")) else None
    pinned = there if there is not None and keep and there.parts == parts else None
    known = {(c.level, c.index, c.sibling): c for c in pinned.cases} if pinned is not None else {}
    dense = {c.spec.digest for c in there.dense} if there is not None else set()
    core = [spec for name, version in operator_versions(None) if name == op for spec in profile("core", op, version)]
    plain = [spec for spec in core if spec.digest not in dense and measurable(spec)]
    tallied = tally(op, measure(plain, processes))
    faults = faults_of(op)
    bits = np.packbits((tallied.triples > 0).ravel()[np.flatnonzero(faults.together)])
    measured = _all_measured(op, known, processes)
    many = design_of(op).many
    further: list[Measured] = [(p, c.spec, shown_by(c, parts)) for p, c in known.items() if p[0] in many]
    if many and not further:
        pool = candidates(op, measured)
        block, _, _ = chosen(pool, design_of(op), bits)
        for k in block:
            tallied.add((pool[k].spec, pool[k].shown))
        further = _further(op, tallied.triples > 0, processes)
    pool = candidates(op, [*measured, *further])
    # With --keep what is pinned stays in all types but the first one, in which plain cases are many: in the others
    # faults that are there in every case were proved with it.
    at, widest = {case.place: k for k, case in enumerate(pool)}, [*design_of(op).models][-1]
    kept = [
        at[case.level, case.index, case.sibling]
        for number, case in enumerate(pinned.cases[: pinned.pinned] if pinned is not None else ())
        if case.level not in (widest, *many) or case.spec.type != "float32" or (pinned and number in pinned.quick)
    ]
    return written(op, pool, bits, kept)


_VARIED, _WAITING = 240, 400
"""Draws of the level of cases with axes that came later, and how many of them and their siblings are measured."""


def _turned(op: str, processes: int) -> dict[str, Any]:
    """The pool of an operator as it is pinned, with siblings for axes that came later; these alone are measured."""
    there, turns = pool_of(op), design_of(op).turns
    assert turns is not None
    turned, of_dense = turns
    items = [
        (place, spec)
        for case in there.dense
        if not case.sibling
        for turn in range(of_dense)
        if (spec := family_of(op).pooled(op, *(place := _turn(case, turn)))) is not None and measurable(spec)
    ]
    measured = list(spread(_measured, items, processes))
    pinned = [((c.level, c.index, c.sibling), c.spec, shown_by(c, there.parts)) for c in there.dense]
    pool = candidates(op, [*pinned, *measured])
    block = Chooser(pool)
    for k in range(len(pinned)):
        block.choose(k)
    block.run(lambda case: case.place[2] >= FIRST_TURN, 0, turned)
    fresh = block.chosen[len(pinned) :]
    rest = [k for k in range(len(pinned), len(pool)) if k not in fresh]
    return _with_rows(op, there.pinned + len(fresh), [_row(op, pool[k]) for k in (*fresh, *rest)], VARIED)


def _waiting(op: str, processes: int) -> dict[str, Any]:
    """The pool of an operator as it is pinned, with cases of axes that came later behind its dense block: those that
    are likely to show what nothing shows on a target that lacks what targets lack. They wait for such targets."""
    there = pool_of(op)
    common = [case for case in there.cases if case.level != VARIED and supports(case.spec, SELDOM_LACKED)]
    items = [
        ((VARIED, index, number), spec)
        for index in range(_VARIED)
        for number in (0, *range(FIRST_TURN, FIRST_TURN + len(TURNS)))
        if (spec := family_of(op).pooled(op, VARIED, index, number)) is not None and measurable(spec) and telling(spec)
    ]
    shown = pool_tally(op, common).triples > 0
    chosen = promising(op, [spec for _, spec in items], shown, _WAITING)
    measured = list(spread(_measured, [items[k] for k in chosen], processes))
    return _with_rows(op, there.pinned, [_row(op, each) for each in candidates(op, measured)], VARIED)


def _eventful(op: str) -> dict[str, Any]:
    """The pool of an operator as it is pinned, with siblings whose sessions do more at its end: of cases that compilers
    for devices take, and of those in half precision. They show what these show, so nothing is measured."""
    there, rows = pool_of(op), [row for row in _rows(op) if row[2] < FIRST_EVENT]
    more = []
    for case in there.cases[there.pinned : len(rows)]:
        device = case.level == "device" or (case.level == "partial" and case.spec.type == "float16")
        place = case.level, case.index, FIRST_EVENT + case.index % len(EVENTS)
        if case.sibling or not device or (spec := family_of(op).pooled(op, *place)) is None:
            continue
        shown = (case.whole, *(case.halves if len(case.halves) > 1 else ()))
        more.append([*place, case.version, case.models, _contexts(op, spec), *(f"{bits:x}" for bits in shown)])
    return {"parts": list(there.parts), "pinned": there.pinned, "quick": list(there.quick), "cases": [*rows, *more]}


def _with_float16(op: str, held: dict[str, Any], processes: int) -> dict[str, Any]:
    """A pool with the cases for targets of float16 alone at its end, where they are not in it."""
    there = {tuple(row[:3]) for row in held["cases"]}
    places = [(level, index, number) for level, index, number in json.loads(_FLOAT16.read_text("utf-8")).get(op, ())]
    pooled = ((place, family_of(op).pooled(op, *place)) for place in places if place not in there)
    items = [(place, spec) for place, spec in pooled if spec is not None and measurable(spec)]
    more = [_row(op, each) for each in candidates(op, list(spread(_measured, items, processes)))] if items else []
    return {**held, "cases": [*held["cases"], *more]}


def _turn(case: Pooled, turn: int) -> Place:
    """The place of the sibling of a case that takes a turn."""
    return case.level, case.index, FIRST_TURN + turn


def _with_rows(op: str, pinned: int, more: Sequence[list[Any]], instead_of: str = "") -> dict[str, Any]:
    """The pool of an operator as it is pinned, with more cases behind its dense block; contexts as they are numbered
    now.

    instead_of
        The level whose cases behind the block they replace; none where it is empty.
    """
    there = pool_of(op)
    rows = [[*row[:5], _held(there.cases[k]), *row[6:]] for k, row in enumerate(_rows(op))]
    return {
        "parts": list(there.parts),
        "pinned": pinned,
        "quick": list(there.quick),
        "cases": [*rows[: there.pinned], *more, *(r for r in rows[there.pinned :] if r[0] != instead_of)],
    }


def _rows(op: str) -> list[list[Any]]:
    held: list[list[Any]] = json.loads(_PATH.read_text(encoding="utf-8"))[op]["cases"]
    return held


def _held(case: Pooled) -> str:
    """The contexts of a pooled case, as they are numbered now."""
    return _contexts(case.op, case.spec)


def _contexts(op: str, spec: Spec) -> str:
    there = [sum(1 << k for k in np.flatnonzero(held).tolist()) for held in space_of(op).held(spec)]
    return ".".join(f"{contexts:x}" for contexts in there)


def main() -> None:
    """Write pool.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", "-j", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="measure new cases alone, and leave in core what it has")
    parser.add_argument("--op", action="append", choices=pooled_operators(), help="only this operator's pool")
    parser.add_argument("--turn", action="store_true", help="leave all as it is but for siblings that take a turn")
    parser.add_argument("--wait", action="store_true", help="leave all as it is, with more such siblings that follow")
    parser.add_argument(
        "--events", action="store_true", help="leave all as it is, with siblings whose sessions do more"
    )
    parser.add_argument(
        "--held", action="store_true", help="leave all as it is, with contexts as they are numbered now"
    )
    asked = parser.parse_args()
    before = json.loads(_PATH.read_text(encoding="utf-8"))

    def anew(op: str) -> dict[str, Any]:
        other = asked.op and op not in asked.op
        out = (asked.turn and design_of(op).turns is None) or (
            (asked.wait or asked.events) and op not in CaseSpec.operators
        )
        if other or out:
            own: dict[str, Any] = before[op]
            return own
        if asked.held:
            return _with_rows(op, pool_of(op).pinned, ())
        if asked.wait:
            return _waiting(op, asked.processes)
        if asked.events:
            return _eventful(op)
        return _turned(op, asked.processes) if asked.turn else _made(op, asked.keep, asked.processes)

    held = {op: _with_float16(op, anew(op), asked.processes) for op in pooled_operators()}
    lines = [f"{json.dumps(op)}: {_lines(value)}" for op, value in held.items()]
    _PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _lines(value: dict[str, Any]) -> str:
    """A row a line, so that a change shows as the rows that changed."""
    rows = ",\n".join(json.dumps(row) for row in value["cases"])
    head = ", ".join(f"{json.dumps(name)}: {json.dumps(value[name])}" for name in ("parts", "pinned", "quick"))
    return "{" + head + ', "cases": [\n' + rows + "\n]}"


if __name__ == "__main__":
    main()
