"""Refusals, put together by what is refused.

A case has many things, and a refusal says of one of them that it is too much, or of several together. A thing is called
refused where nothing else can be the reason: the target's own message names it, or some refused case has nothing else
that never runs. What only came along with that is not accused. Nor is anything looked for behind a message that lists
what the node has, if something of that is refused by itself. What was never tried apart is named together, unless the
message names something else that the case has.
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
from .conditions import Traits, message_kind

__all__ = ["refusals"]

_ENOUGH = 6
"""Cases with something that are refused, all of them, from which it is told: where one case in three is refused for no
reason that anybody sees, six in a row are so once in 729 times, and an operator has some hundred traits."""

_TOLD = 3
"""Things that were only refused together, of which so many are named."""

_SHORT = 3
"""Letters that a part of a shortened name has at least."""

_LISTING = 2
"""A message that names more things than that of one case lists what it was given, and not what is wrong with it."""


class _Refusal(Struct, frozen=True):
    """A refused result: how it is worded, and what it has that never runs (a reader's words for each).

    named, mentioned
        What of that its message names as the reason, and all that it mentions, be it in a list of what it was given.
    speaks
        Whether the message names what runs elsewhere: then it is about that, and not about what merely never runs.
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
    """Refused results with what is refused, in words, the largest group first.

    Of a group the results with the commonest message come first. Operators that refuse the same stand in one group,
    whatever their messages.

    The words are empty where nobody knows what is refused: then the messages are alike.
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
    """Return the words for an operator of which nothing runs: that it is refused altogether shows a case that has
    nothing which can be left out."""
    if any(not one.suspects for one in members):
        return f"{op} altogether"
    shared = set(members[0].suspects).intersection(*(one.suspects for one in members))
    return _words(op, sorted(shared)) if shared else f"{op} (no plain case was tried)"


@lru_cache(maxsize=256)
def _plain(op: str, version: int) -> Traits:
    """Traits of a case that has nothing which can be left out; none where nobody knows such cases."""
    try:
        return SpecProbe(family_of(op).spec(op, version)).traits
    except (LookupError, TypeError, ValueError):  # a directory that somebody else made may hold any node
        return frozenset()


def _read(result: Result, traits: Traits, runs: set[str], everywhere: set[str]) -> _Refusal:
    """Return a refusal with what may be the reason, by what runs of its operator, and in every other that runs at
    all."""
    message, kind = _bare(result.message), message_kind(result.message)
    # A list of functions says more than it needs to: the functions are traits of their own.
    never = [t for t in sorted(traits) if t not in runs and not t.startswith("activations ")]
    if not runs:
        # Where nothing runs a type or a version is as good a reason as the operator.
        usual = everywhere | _plain(result.op, result.version)
        never = [trait for trait in never if not _identity(trait) and trait not in usual]
    mentioned = frozenset(worded(t) for t in never if _names(message, t, result.op, result.version))
    suspects = {worded(trait): trait for trait in never}
    others = (t for t in traits if t in runs and not _identity(t))
    speaks = bool(_TENSOR.search(message)) or any(_names(message, t, result.op, result.version) for t in others)
    named = mentioned if len(mentioned) <= _LISTING else frozenset[str]()
    return _Refusal(result, kind, suspects, named, mentioned, speaks)


_TENSOR = re.compile(r"(?<![\w'\"#])[XWR](?![\w'\"])")
"""Inputs of every node, as a sentence names them: ``W must be constant``. Quoted is what a graph calls its own."""


def _identity(trait: str) -> bool:
    return trait in FORMATS or trait.startswith("version ")


@lru_cache(maxsize=1024)
def _bare(message: str) -> str:
    """A message without lists and paths, which name what was given and not what is wrong."""
    return re.sub(r"\[[^\]]*\]|\{[^}]*\}|(?:/[\w.+-]+){2,}", " ", message)


@lru_cache(maxsize=65536)
def _names(message: str, trait: str, op: str, version: int) -> bool:
    """Tell whether a message names what a trait is about: a function, an attribute, an input, a type or the version."""
    if trait.startswith("version "):
        return bool(re.search(rf"\b{re.escape(op)}\({version}\)|version:? {version}\b|\bopset\b", message))
    if trait in FORMATS:
        return bool(re.search(rf"\b{trait}\b", message, re.IGNORECASE))  # float16 is no bfloat16
    try:
        known = operator_version(op, version)
    except UnknownOperator:  # a directory that somebody else made may hold any node
        return trait.startswith("uses ") and worded(trait) in message
    names = {*known.attributes, *known.inputs} & set(re.findall(r"\w{2,}", worded(trait)))
    if noun := _INPUT.fullmatch(worded(trait)):
        names.add(noun[1])
    if trait.startswith("uses "):
        names = {worded(trait)}
    if any(re.search(rf"(?<![A-Za-z]){re.escape(name)}s?(?![A-Za-z])", message, re.IGNORECASE) for name in names):
        return True
    words = re.findall(r"[a-z]+(?:_[a-z]+)+", message.lower())
    return any(_shortens(word, name.lower()) for word in words for name in names)


_INPUT = re.compile(r"(\w+?)s? [A-Z]")
"""An input with the word for it: ``peepholes P``."""


def _shortens(word: str, name: str) -> bool:
    """Return whether a word is a name with shorter parts: ``seq_len`` of ``sequence_lens``."""
    parts, whole = word.split("_"), name.split("_")
    pairs = zip(parts, whole, strict=False)
    return len(parts) == len(whole) and all(len(part) >= _SHORT and own.startswith(part) for part, own in pairs)


def _apart(refused: Sequence[_Refusal]) -> dict[tuple[str, str], list[_Refusal]]:
    """Refusals by what is refused: (words, kind of message where there are none)."""
    sure = _sure(refused)
    counts = Counter(word for one in refused for word in one.suspects)
    groups: defaultdict[tuple[str, str], list[_Refusal]] = defaultdict(list)
    left: defaultdict[str, list[_Refusal]] = defaultdict(list)
    for one in refused:
        own = [w for w, t in one.suspects.items() if _is_sure(one, w, t, sure)]
        own = own or [w for w in one.mentioned if (one.result.op, w) in sure]
        if own:
            groups[max(own, key=lambda word: (word in one.named, counts[word], word)), ""].append(one)
        else:
            left[one.kind].append(one)
    for kind, members in left.items():
        for words, own_members in _together(members):
            groups[words, "" if words else kind] += own_members
    return groups


def _is_sure(one: _Refusal, word: str, trait: str, sure: Mapping[tuple[str, str], set[str]]) -> bool:
    """Return whether a thing is refused by itself, and this refusal is about it. Of a type or a version any message is,
    and one that is about nothing else is so in every operator."""
    kinds = sure.get((one.result.op, word), set())
    if not _identity(trait):
        return one.kind in kinds
    return bool(kinds) or {name for (_, name), others in sure.items() if one.kind in others} == {word}


def _sure(refused: Sequence[_Refusal]) -> dict[tuple[str, str], set[str]]:
    """Return the features that are refused by themselves, for each operator: the messages that are about it."""
    # What is refused with another message is so for another reason.
    counts = Counter((one.kind, word) for one in refused for word in one.suspects)
    sure: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for one in refused:
        for word in one.named:
            sure[one.result.op, word].add(one.kind)
        if len(one.suspects) == 1:
            ((word, trait),) = one.suspects.items()
            if _identity(trait) or (counts[one.kind, word] >= _ENOUGH and not one.speaks):
                sure[one.result.op, word].add(one.kind)
    return sure


def _together(members: Sequence[_Refusal]) -> Iterable[tuple[str, list[_Refusal]]]:
    """Refusals with one message, by what they have in common that never runs; what has nothing in common with enough
    others comes last, without words."""
    rest = list(members)
    shared = set(rest[0].suspects).intersection(*(one.suspects for one in rest)) if len(rest) > 1 else set()
    if len(shared) == 1 and (len(rest) >= _ENOUGH or any(_identity(rest[0].suspects[word]) for word in shared)):
        yield shared.pop(), rest
        return
    while rest:
        identities = (word for one in rest for word, trait in one.suspects.items() if _identity(trait))
        counts = Counter(identities) or Counter(word for one in rest for word in one.suspects)
        word, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        some = [one for one in rest if one.has(word)]
        if not some or (times < _ENOUGH and not _identity(some[0].suspects[word])):
            break
        common = set(some[0].suspects).intersection(*(one.suspects for one in some))
        together = sorted(common - {word})
        # Of several things that were never tried apart none is guessed where the message says what it is about.
        yield "" if together and all(one.speaks for one in some) else _words(word, together), some
        rest = [one for one in rest if not one.has(word)]
    if rest:
        yield "", rest


def _words(word: str, others: Sequence[str]) -> str:
    """Return the features that were refused together: ``bfloat16 (only tested together with layout 1 and no bias)``."""
    shown = list(others)
    if len(shown) > _TOLD:
        shown = [*shown[: _TOLD - 1], f"{len(shown) - _TOLD + 1} more features"]
    listed = " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
    return f"{word} (only tested together with {listed})" if listed else word


def _representative(members: Sequence[Result]) -> list[Result]:
    """Return results with the commonest message first, in their order otherwise."""
    kinds = Counter(message_kind(result.message) for result in members)
    return sorted(members, key=lambda result: -kinds[message_kind(result.message)])
