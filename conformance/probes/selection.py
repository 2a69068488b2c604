"""Selections of cases: a profile, filtered by operator, version, type and case; shards of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from ...cases import PROFILES, Spec, operator_versions, profile
from ...cases.profiles.random_cases import random_specs
from ...cases.specs.family import drawn_operators
from ...reference import FORMATS, operator_names, operator_version, versions_of
from ...reference.documents.operators import operator_called, prefix_of
from ...reference.errors import UserError
from .drawn import challenge_probes, fresh_profile, split_nonce
from .naming import UnknownName as UnknownName
from .naming import each_once, expanded, is_folder, is_portable, portable_probes, require_known
from .probe import Probe, SpecProbe


@dataclass(frozen=True)
class Selection:
    """A selection as requested; empty tuples mean all.

    cases
        Case ids, or patterns of them with ``*`` and ``?``, of any profile. Or cases themselves: the JSON of their
        specs, or paths of test-case directories.
    directories
        Folders of test-case directories, which are run instead of a profile.
    """

    profile: str = "core"
    ops: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()

    @property
    def chosen(self) -> bool:
        """Whether the user chose single cases or a model's nodes, so that the results cover nothing else."""
        return bool(self.cases or self.directories)

    @property
    def narrowed(self) -> str:
        """The selected operators, versions and types, like ``LSTM-14:float16|float32``; empty for all."""
        if not (self.ops or self.versions or self.types):
            return ""
        versions, types = "|".join(map(str, self.versions)), "|".join(self.types)
        return f"{'|'.join(self.ops) or '*'}-{versions or '*'}:{types or '*'}"


def selection_of(
    profile: str = "core",
    ops: Iterable[str] | None = None,
    types: Iterable[str] | None = None,
    cases: Iterable[str] | None = None,
    base: Path | None = None,
) -> Selection:
    """Return the selection for texts from a command, Python or pytest.

    ops
        Operators, or versions of them, like ``GRU-22``.
    cases
        As in Selection. If all of them are folders, these are run instead of the profile.
    base
        The folder to which paths of cases, and of files of cases, are relative.

    Raise UserError for a file of cases that cannot be read, and for versions of operators that cannot be combined.
    """
    names = expanded(cases or (), base)
    chosen, numbers = _operators_and_versions(list(ops or ()))
    selection = Selection(profile, chosen, numbers, tuple(types or ()))
    if names and all(map(is_folder, names)):
        return replace(selection, profile="directories", directories=names)
    return replace(selection, cases=names)


def operator_version_called(text: str) -> tuple[str, str]:
    """Return the operator and the version (empty for all) of a text like ``GRU`` or ``GRU-22``."""
    name, dash, number = text.rpartition("-")
    return (
        (operator_called(name), number)
        if dash and number.isdecimal() and len(number) < 10
        else (operator_called(text), "")
    )


def _operators_and_versions(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the operators and their versions.

    Raise UserError for texts like LSTM-7 and GRU-14 together: a selection has each version of each operator.
    """
    pairs = [operator_version_called(text) for text in texts]
    ops = tuple(dict.fromkeys(op for op, _ in pairs))
    numbers = tuple(dict.fromkeys(int(number) for _, number in pairs if number))
    if not numbers:
        return ops, ()
    existing = list(operator_versions(None))
    asked = {(op, v) for op, v in existing for name, number in pairs if op == name and number in ("", str(v))}
    if asked != {(op, v) for op, v in existing if op in ops and v in numbers}:
        raise UserError(f"{', '.join(texts)}: different versions of different operators: run them one after another")
    return ops, numbers


def operator_types() -> list[str]:
    """Return every operator version and type that has cases, like ``LSTM-14:float32``."""
    existing = operator_versions(None)
    return [f"{op}-{v}:{t}" for op, v in existing for t in FORMATS if t in operator_version(op, v).types]


def select(selection: Selection) -> list[Spec]:
    """Return the cases of a selection, of ONNX's own operators if it names none.

    Raise the errors of :func:`select_probes`.
    """
    probes = select_probes(selection, operator_names(""))
    return [probe.spec for probe in probes if isinstance(probe, SpecProbe)]


def select_probes(selection: Selection, about: Sequence[str]) -> list[Probe]:
    """Return the cases as probes, in a fixed order.

    about
        The default operators, if the selection names none. A named case may be of another operator.

    Raise UnknownName for a name that does not exist, or if nothing is left, and NotListed where the code of an operator
    raises an error.
    """
    if selection.directories:
        return narrow(selection, portable_probes(selection.directories))
    profile_name, nonce = split_nonce(selection.profile)
    if nonce:
        pinned = select_probes(replace(selection, profile=profile_name), about)
        fresh = (challenge_probes(nonce, *pair, selection.types) for pair in _versions(selection, about))
        return pinned if selection.cases else _joined(chain(pinned, *fresh))
    fresh_cases = fresh_profile(selection.profile)
    if fresh_cases is not None and not selection.cases:
        count, seed = fresh_cases
        ops = selection.ops or tuple(op for op in about if op in drawn_operators()) or tuple(about)
        chosen_versions(selection, ops)
        try:
            specs = random_specs(count, seed, ops, selection.versions, selection.types)
        except ValueError:
            raise UnknownName("combination", selection.narrowed, (), " of fresh cases") from None
        return [SpecProbe(spec, True) for spec in specs]
    portable = portable_probes(word for word in selection.cases if is_portable(word))
    portable = narrow(selection, portable, " among the cases given") if portable else []
    named = tuple(word for word in selection.cases if not is_portable(word))
    listed = _of_profile(replace(selection, cases=named), about) if named or not portable else []
    return _joined([*listed, *portable]) if portable else listed


def _joined(probes: Iterable[Probe]) -> list[Probe]:
    """Return probes without duplicates. Forbidden models come last, as in a profile."""
    return sorted(each_once(probes), key=lambda probe: "illegal" in probe.features)


def probes_of_profile(name: str) -> list[Probe]:
    """Return all cases of a profile, of every operator. Raise UnknownName."""
    return select_probes(Selection(name), operator_names())


def _of_profile(selection: Selection, about: Sequence[str]) -> list[Probe]:
    """Return the cases of a profile, or those of any profile that patterns match. Raise UnknownName."""
    require_known("profile", [selection.profile], PROFILES)
    chosen = chosen_versions(selection, about)
    probes = _named(selection, about) if selection.cases else list(_listed(selection, chosen))
    if not probes:
        of_types, everything = (replace(selection, versions=(), types=types) for types in (selection.types, ()))
        ops = _versions(everything, about)
        candidates = list(_listed(of_types, ops)) or list(_listed(everything, ops))
        combinations = list(dict.fromkeys(f"{p.op}-{p.version}:{p.type}" for p in candidates))
        raise UnknownName("combination", selection.narrowed, combinations, f" in profile {selection.profile}")
    # Cases that may corrupt a runtime's memory come last, because later cases would fail too.
    return sorted(probes, key=lambda probe: isinstance(probe, SpecProbe) and probe.spec.spoils)


def chosen_versions(selection: Selection, about: Sequence[str]) -> list[tuple[str, int]]:
    """Return the selected operator versions. Raise UnknownName for an operator, version or type that does not exist."""
    existing = list(operator_versions(None))
    require_known("operator", selection.ops, sorted({op for op, _ in existing}))
    versions = sorted({v for o, v in existing if o in (selection.ops or about)})
    for version in selection.versions:
        if version not in versions:
            raise UnknownName("operator version", version, versions, hint=_of_opset(version, selection.ops))
    require_known("type", selection.types, [*FORMATS])
    return _versions(selection, about)


def _of_opset(opset: int, ops: Sequence[str]) -> str:
    """Return a hint with the operator versions in a model of that opset."""
    newest = {op: max((v for v in versions_of(op) if v <= opset), default=0) for op in (ops or operator_names(""))}
    named = ", ".join(f"{op}-{version}" for op, version in newest.items() if version)
    return f"a model of opset {opset} holds {named}" if named else ""


def narrow(selection: Selection, probes: Sequence[Probe], among: str = " among the directories") -> list[Probe]:
    """Return the probes of the selected operators, versions and types.

    Raise UnknownName for a name that no probe has; `among` describes the probes.
    """
    axes: tuple[tuple[str, Sequence[object], Callable[[Probe], object]], ...] = (
        ("operator", selection.ops, lambda p: p.op),
        ("operator version", selection.versions, lambda p: p.version),
        ("type", selection.types, lambda p: p.type),
    )
    remaining = list(probes)
    for kind, asked, of in axes:
        require_known(kind, asked, list(dict.fromkeys(map(of, remaining))), among)
        remaining = [probe for probe in remaining if not asked or of(probe) in asked]
    return remaining


def _versions(selection: Selection, about: Sequence[str]) -> list[tuple[str, int]]:
    """Return the selected operator versions."""
    ops, versions = selection.ops or about, selection.versions
    return [(op, v) for op, v in operator_versions(None) if op in ops and (not versions or v in versions)]


def _listed(selection: Selection, versions: Iterable[tuple[str, int]]) -> Iterator[Probe]:
    """Return the profile's cases of operator versions, in the selected types."""
    specs = chain.from_iterable(profile(selection.profile, op, version) for op, version in versions)
    return (SpecProbe(spec) for spec in specs if not selection.types or spec.type in selection.types)


def _named(selection: Selection, about: Sequence[str]) -> list[Probe]:
    """Return the cases that patterns match, searched in the profile, then in the widest profiles; selected operators
    first.

    Raise UnknownName for a pattern without a case.
    """
    meant = _versions(selection, about)
    others = [] if selection.ops else [pair for pair in _versions(selection, operator_names()) if pair not in meant]

    names = dict.fromkeys((selection.profile, *PROFILES[-2:]))

    @cache
    def by_id(name: str, op: str, version: int) -> Mapping[str, Probe]:
        return {probe.id: probe for probe in _listed(replace(selection, profile=name), [(op, version)])}

    def found(pattern: str) -> Iterable[Probe]:
        tried: list[str] = []
        for group in (meant, others):
            versions = [pair for pair in group if _may_have(pattern, *pair)]
            for name in names if versions else ():
                searched = [by_id(name, *pair) for pair in versions]
                if hits := [probe for probes in searched for probe in _matching(pattern, probes)]:
                    return hits
                tried += chain.from_iterable(searched)
        tried = tried or [probe.id for probe in _listed(selection, [*meant, *others])]
        if not tried:
            return []
        among = f" among {selection.narrowed}" if selection.narrowed else ""
        raise UnknownName("case", pattern, tried, among)

    ranks = {op: rank for rank, (op, _) in enumerate([*meant, *others])}
    probes = {probe.id: probe for pattern in selection.cases for probe in found(pattern)}
    return sorted(probes.values(), key=lambda probe: ranks[probe.op])


_WILD = re.compile(r"[*?[]")


def _may_have(pattern: str, op: str, version: int) -> bool:
    """Return whether ids of an operator version may begin like a pattern: creating all other cases takes seconds."""
    begins, prefix = _WILD.split(pattern)[0], f"{prefix_of(op)}-{version}."
    return prefix.startswith(begins) or begins.startswith(prefix)


def _matching(pattern: str, probes: Mapping[str, Probe]) -> list[Probe]:
    if not _WILD.search(pattern):
        return [probes[pattern]] if pattern in probes else []
    return [probe for id, probe in probes.items() if fnmatchcase(id, pattern)]


Item = TypeVar("Item")

_MOST_SHARDS = 100_000


class Shard(Struct, frozen=True):
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Return every `count`-th item. Neighbours are similar, so all shards get similar cases."""
        return tuple(items[self.number - 1 :: self.count])


def parse_shard(text: str) -> Shard:
    """Return the shard of a text like ``2/8``. Raise UserError."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    shard = Shard(int(match[1]), int(match[2])) if match else Shard(0, 0)
    if not 1 <= shard.number <= shard.count <= _MOST_SHARDS:
        raise UserError(f"no shard {text[:40]!r}: it is K/N with K from 1 to N, like 2/8")
    return shard
