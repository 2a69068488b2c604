"""Refusals, grouped by the refused feature.

A case has many features, and a refusal is due to one of them or to several together. A feature counts as refused only
if nothing else can be the reason: the target's message names it, or some refused case has no other feature that never
runs. Features that merely occur with it are not blamed. A message that lists the node's features is not searched for
other reasons if one of these features is refused by itself. Features that were never tried apart are named together,
unless the message names another feature of the case.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from ...cases import family_of
from ...reference import FORMATS, UnknownOperator, operator_version
from ..probes.probe import SpecProbe, worded
from ..results.result import Result
from .conditions import Traits, is_identity, message_kind

_ENOUGH = 6
"""Minimum number of cases with a feature, all of them refused. If one case in three is refused for no apparent reason,
six in a row are refused once in 729 times, and an operator has about a hundred traits."""

_TOLD = 3
"""Maximum number of features named among those that were only refused together."""

_SHORT = 3
"""Minimum number of letters in a part of a shortened name."""

_LISTING = 2
"""Maximum number of features that a message names as the reason; a message that names more lists the inputs."""


class _Refusal(Struct, frozen=True):
    """Refused result with its features that never run (words by trait).

    named, mentioned
        The features that its message names as the reason, and all that it mentions, even in a list of inputs.
    speaks
        Whether the message names a feature that runs elsewhere. Then that feature is the reason, not one that never
        runs.
    """

    result: Result
    kind: str
    suspects: Mapping[str, str]
    named: frozenset[str]
    mentioned: frozenset[str]
    speaks: bool

    def has(self, word: str) -> bool:
        return word in self.suspects


def refusals(
    refused: Iterable[Result], running: Iterable[Result], traits: Callable[[Result], Traits]
) -> list[tuple[str, list[Result]]]:
    """Return pairs of words for the refused feature and refused results, the largest group first.

    Results with the commonest message come first in a group. Operators that refuse the same feature form one group,
    whatever their messages.

    The words are empty if the refused feature is unknown. Then the group has similar messages.
    """
    ran: defaultdict[str, set[str]] = defaultdict(set)
    for result in running:
        ran[result.op] |= traits(result)
    everywhere = set[str]().union(*ran.values()).intersection(*ran.values())
    groups: defaultdict[tuple[str, str], list[Result]] = defaultdict(list)
    never: defaultdict[str, list[_Refusal]] = defaultdict(list)
    left: list[_Refusal] = []
    for result in refused:
        one = _read(result, traits(result), ran.get(result.op, set()), everywhere)
        if result.op in ran or one.named:
            left.append(one)
        elif ran:
            never[result.op].append(one)
        else:
            groups["", one.kind].append(result)
    for op, members in never.items():
        groups[_whole(op, members), ""] += [one.result for one in members]
    for (words, kind), members in _apart(left).items():
        groups[words, kind] += [one.result for one in members]
    named = [(words, _representative(members)) for (words, _), members in groups.items()]
    return sorted(named, key=lambda group: -len(group[1]))


def _whole(op: str, members: Sequence[_Refusal]) -> str:
    """Return the words for an operator of which nothing runs. It is refused altogether if a case without optional
    features is refused."""
    if any(not one.suspects for one in members):
        return f"{op} altogether"
    shared = set(members[0].suspects).intersection(*(one.suspects for one in members))
    return _words(op, sorted(shared)) if shared else f"{op} (no plain case was tried)"


@lru_cache(maxsize=256)
def _plain(op: str, version: int) -> Traits:
    """Return the traits of a case without optional features; empty if there is no such case."""
    try:
        return SpecProbe(family_of(op).spec(op, version)).traits
    except (LookupError, TypeError, ValueError):  # directories of others may contain any node
        return frozenset()


def _read(result: Result, traits: Traits, runs: set[str], everywhere: set[str]) -> _Refusal:
    """Return a refusal with its possible reasons: traits that run neither in its operator nor, if nothing of that runs,
    in all the others."""
    message, kind = _bare(result.message), message_kind(result.message)
    # Lists of functions are ignored, because each function is a trait too.
    never = [t for t in sorted(traits) if t not in runs and not t.startswith("activations ")]
    if not runs:
        # If nothing runs, blame the operator rather than the type or the version.
        usual = everywhere | _plain(result.op, result.version)
        never = [trait for trait in never if not is_identity(trait) and trait not in usual]
    mentioned = frozenset(worded(t) for t in never if _names(message, t, result.op, result.version))
    suspects = {worded(trait): trait for trait in never}
    others = (t for t in traits if t in runs and not is_identity(t))
    speaks = bool(_TENSOR.search(message)) or any(_names(message, t, result.op, result.version) for t in others)
    named = mentioned if len(mentioned) <= _LISTING else frozenset[str]()
    return _Refusal(result, kind, suspects, named, mentioned, speaks)


_TENSOR = re.compile(r"(?<![\w'\"#])[XWR](?![\w'\"])")
"""Inputs of every node, as a message names them: ``W must be constant``. Quoted names belong to the graph."""


@lru_cache(maxsize=1024)
def _bare(message: str) -> str:
    """Return a message without lists and paths, which name inputs rather than reasons."""
    return re.sub(r"\[[^\]]*\]|\{[^}]*\}|(?:/[\w.+-]+){2,}", " ", message)


@lru_cache(maxsize=65536)
def _names(message: str, trait: str, op: str, version: int) -> bool:
    """Return whether a message names the subject of a trait: a function, an attribute, an input, a type or the
    version."""
    if trait.startswith("version "):
        return bool(re.search(rf"\b{re.escape(op)}\({version}\)|version:? {version}\b|\bopset\b", message))
    if trait in FORMATS:
        return bool(re.search(rf"\b{trait}\b", message, re.IGNORECASE))  # float16 must not match bfloat16
    try:
        document = operator_version(op, version)
    except UnknownOperator:  # directories of others may contain any node
        return trait.startswith("uses ") and worded(trait) in message
    names = {*document.attributes, *document.inputs} & set(re.findall(r"\w{2,}", worded(trait)))
    if noun := _INPUT.fullmatch(worded(trait)):
        names.add(noun[1])
    if trait.startswith("uses "):
        names = {worded(trait)}
    if any(re.search(rf"(?<![A-Za-z]){re.escape(name)}s?(?![A-Za-z])", message, re.IGNORECASE) for name in names):
        return True
    words = re.findall(r"[a-z]+(?:_[a-z]+)+", message.lower())
    return any(_shortens(word, name.lower()) for word in words for name in names)


_INPUT = re.compile(r"(\w+?)s? [A-Z]")
"""Input with its noun: ``peepholes P``."""


def _shortens(word: str, name: str) -> bool:
    """Return whether a word is a name with shortened parts: ``seq_len`` for ``sequence_lens``."""
    parts, whole = word.split("_"), name.split("_")
    pairs = zip(parts, whole, strict=False)
    return len(parts) == len(whole) and all(len(part) >= _SHORT and own.startswith(part) for part, own in pairs)


def _apart(refused: Sequence[_Refusal]) -> dict[tuple[str, str], list[_Refusal]]:
    """Return refusals by words for the refused feature and, if there are none, by kind of message."""
    sure = _sure(refused)
    counts = Counter(word for one in refused for word in one.suspects)
    groups: defaultdict[tuple[str, str], list[_Refusal]] = defaultdict(list)
    left: defaultdict[str, list[_Refusal]] = defaultdict(list)
    for one in refused:
        features = [w for w, t in one.suspects.items() if _is_sure(one, w, t, sure)]
        features = features or [w for w in one.mentioned if (one.result.op, w) in sure]
        if features:
            groups[max(features, key=lambda word: (word in one.named, counts[word], word)), ""].append(one)
        else:
            left[one.kind].append(one)
    for kind, members in left.items():
        for words, group in _together(members):
            groups[words, "" if words else kind] += group
    return groups


def _is_sure(one: _Refusal, word: str, trait: str, sure: Mapping[tuple[str, str], set[str]]) -> bool:
    """Return whether a feature is refused by itself and this refusal is due to it. For a type or a version any message
    counts. A message that has no other reason in any operator counts too."""
    kinds = sure.get((one.result.op, word), set())
    if not is_identity(trait):
        return one.kind in kinds
    return bool(kinds) or {name for (_, name), others in sure.items() if one.kind in others} == {word}


def _sure(refused: Sequence[_Refusal]) -> dict[tuple[str, str], set[str]]:
    """Return the kinds of messages about features that are refused by themselves, by operator and feature."""
    # Another message means another reason.
    counts = Counter((one.kind, word) for one in refused for word in one.suspects)
    sure: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for one in refused:
        for word in one.named:
            sure[one.result.op, word].add(one.kind)
        if len(one.suspects) == 1:
            ((word, trait),) = one.suspects.items()
            if is_identity(trait) or (counts[one.kind, word] >= _ENOUGH and not one.speaks):
                sure[one.result.op, word].add(one.kind)
    return sure


def _together(members: Sequence[_Refusal]) -> Iterable[tuple[str, list[_Refusal]]]:
    """Yield refusals with one message, grouped by common features that never run. Refusals that share no feature with
    enough others come last, without words."""
    rest = list(members)
    while rest:
        identities = (word for one in rest for word, trait in one.suspects.items() if is_identity(trait))
        counts = Counter(identities) or Counter(word for one in rest for word in one.suspects)
        word, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        sharing = [one for one in rest if one.has(word)]
        if not sharing or (times < _ENOUGH and not is_identity(sharing[0].suspects[word])):
            break
        common = set(sharing[0].suspects).intersection(*(one.suspects for one in sharing))
        together = sorted(common - {word})
        # Do not guess among features that were never tried apart if the message names its reason.
        yield "" if together and all(one.speaks for one in sharing) else _words(word, together), sharing
        rest = [one for one in rest if not one.has(word)]
    if rest:
        yield "", rest


def _words(word: str, others: Sequence[str]) -> str:
    """Return the words for features that were refused together: ``bfloat16 (only tested together with layout 1 and no
    bias)``."""
    shown = list(others)
    if len(shown) > _TOLD:
        shown = [*shown[: _TOLD - 1], f"{len(shown) - _TOLD + 1} more features"]
    listed = " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
    return f"{word} (only tested together with {listed})" if listed else word


def _representative(members: Sequence[Result]) -> list[Result]:
    """Return results with the commonest message first, otherwise in their order."""
    kinds = Counter(message_kind(result.message) for result in members)
    return sorted(members, key=lambda result: -kinds[message_kind(result.message)])
