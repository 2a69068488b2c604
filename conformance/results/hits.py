"""Hits: whom a failure of a target affects, by what they rely on, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...reference import topic_of
from ..judging.judgement import DECLINED, FAILING, Verdict
from ..judging.vocabulary import NO_FAILURE, happening, short_title, word
from .support import ResultsAlike, ShortFinding, counted, listed

_FORBIDDEN = Verdict.NOT_REJECTED.value


class Hit(Struct, frozen=True):
    """Users whom a finding hits, and how: those who rely on ``on``, which is empty where nobody knows.

    ``why`` explains it where only its list of known failures does; ``where`` has the operators and types that show it,
    ``problems`` the places of its findings among those given. ``forbidden`` is whether it is about models that the
    document forbids: who has legal ones is not hit by it.
    """

    on: str
    what: str
    why: str
    where: str
    known: bool
    cases: int
    new: int
    problems: tuple[int, ...]
    forbidden: bool = False

    @property
    def text(self) -> str:
        """The feature and how it is hit, in one line."""
        return f"{self.on}: {_small(self.what)}" if self.on else self.what

    @property
    def all_new(self) -> bool:
        """Tell whether none of its cases is on a list, or nobody has counted those that are not."""
        return not self.known and self.new in (0, self.cases)

    @property
    def count(self) -> str:
        """The number of cases, and of new ones where only some are."""
        words = counted(self.cases)
        return f"{words}, {self.new:,} of them new" if 0 < self.new < self.cases else words


def hits_of(problems: Sequence[ShortFinding], tried: Sequence[ResultsAlike]) -> Iterator[Hit]:
    """The hits of the failures: what is new before what is known, what has many cases before what has few. What is
    known to be accepted though it is forbidden is one, as it hits only those who count on a refusal."""
    failing = [k for k, p in enumerate(problems) if p.verdict not in DECLINED and p.kind not in NO_FAILURE]
    taken = [k for k in failing if problems[k].kind == _FORBIDDEN and problems[k].expected]
    # Users who deploy a model ask what becomes of it first, and last whether invalid ones run.
    order = {k: _order(problems[k]) for k in failing}
    alike: dict[tuple[str, str, str, bool, bool], list[int]] = {}
    for k in sorted(failing, key=lambda k: order[k]):
        problem = problems[k]
        if k not in taken:
            on = _relied_on(problem, tried)
            what, why = _bare(problem), "" if on else problem.why
            if not on and not why and problem.verdict in _UNTOLD:
                what = f"{what}, and nothing is known that only these cases have; the smallest is {problem.smallest}"
            alike.setdefault((on, what, why, problem.expected, problem.kind == _FORBIDDEN), []).append(k)
    for (on, what, why, expected, forbidden), places in alike.items():
        members = [problems[k] for k in places]
        yield Hit(on, what, why, _where(*members), expected, *_counts(members), tuple(places), forbidden)
    if taken:
        members = [problems[k] for k in taken]
        cases, new = _counts(members)
        what = f"{cases:,} of them ran"
        yield Hit("invalid models being rejected", what, "", _where(*members), True, cases, new, tuple(taken), True)


def _order(problem: ShortFinding) -> tuple[bool, bool, bool, int]:
    """New before known; a cause of which every case is new before one that shares some case with a new cause."""
    shares = problem.new < len(problem.cases)
    return problem.expected, problem.kind == _FORBIDDEN, shares, -len(problem.cases)


def _counts(problems: Sequence[ShortFinding]) -> tuple[int, int]:
    """(distinct cases, how many of them are new)."""
    cases = len({case for problem in problems for case in problem.cases})
    return cases, min(cases, sum(problem.new for problem in problems))


_UNTOLD = (Verdict.CRASHED.value, Verdict.TIMED_OUT.value)
"""Verdicts whose title alone says nothing of when they come."""


_ANY = "any node"

_TOPICS = {
    "activation-alpha": "activation_alpha",
    "activation-beta": "activation_beta",
    "activations": "activations",
    "arithmetic": "its arithmetic",
    "attributes": "attributes",
    "batch": "several rows",
    "bias": "bias B",
    "clip": "clip",
    "coefficients": "alpha and beta of activations",
    "constants": "weights as inputs of the graph",
    "dimensions": "symbolic dimensions",
    "direction": "direction",
    "directions": "direction",
    "empty-sequence": "rows of length 0",
    "equations": _ANY,
    "gates": _ANY,
    "hidden-size": "hidden_size",
    "infinity": "infinity",
    "initial-states": "initial states",
    "input-forget": "input_forget",
    "inputs": "which inputs are given",
    "layout": "layout",
    "lengths": "sequence_lens",
    "linear-before-reset": "linear_before_reset",
    "names": "the old name",
    "nan": "NaN",
    "output-quantization": "quantized outputs",
    "output-sequence": "output_sequence",
    "outputs": "which outputs are asked for",
    "outputs.last-cell": "Y_c",
    "outputs.last-hidden": "Y_h",
    "outputs.order": "the order of Y",
    "outputs.shapes": "the shapes of outputs",
    "overflow": "large numbers",
    "padding": "what stands past a row's length",
    "peepholes": "peepholes P",
    "quantization": "quantization",
    "rows": "several rows",
    "scales": "scales",
    "shapes": "the shapes of inputs",
    "shapes.no-steps": "seq_length 0, or batch_size 0",
    "shapes.one": "a size of 1",
    "session": "a session that runs again",
    "state-quantization": "quantized states",
    "thresholded-relu": "ThresholdedRelu",
    "types": "element types",
    "types.bfloat16": "bfloat16",
    "zero-points": "zero points",
}
"""Features that somebody relies on whom a fault against a clause hits, by the clause's id without its operator, or the
beginning of it."""


_INCIDENTAL = re.compile(r"[1-4] .* or more( \(.*\))?|outputs? .*")
"""Conditions that a smallest case has because some size and some output it must have; who has fewer than 18 steps wants
to know that it takes as many."""


def _relied_on(problem: ShortFinding, tried: Sequence[ResultsAlike]) -> str:
    """Features whose users a finding affects. What a known fault is about says it best, with those conditions that
    tell more; empty where nothing tells."""
    topic = _topic(problem.clauses)
    if not topic or topic == _ANY:
        return problem.conditions or _without_conditions(problem, tried)
    named = _words(topic)
    more = [
        c for c in problem.conditions.split(" and ") if c and not _INCIDENTAL.fullmatch(c) and not _words(c) & named
    ]
    return f"{topic} (with {' and '.join(more)})" if more else topic


def _words(text: str) -> set[str]:
    """The words that say something; a plural is no other word."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]{4,}|[A-Z]\b", text)}


def _without_conditions(problem: ShortFinding, tried: Sequence[ResultsAlike]) -> str:
    """``always`` where nothing of its operators is right; or the types that a loss of accuracy is about, where there
    are others: it comes with the type, whatever a node has."""
    ran = [t for t in tried if t.op in problem.operators and t.verdict not in DECLINED]
    failed = sum(t.times for t in ran if t.verdict in FAILING)
    if ran and failed == len(problem.cases) and all(t.verdict != Verdict.PASS.value for t in ran):
        return "always"
    everywhere = bool(ran) and {t.type for t in ran} <= {*problem.types}
    return listed(problem.types) if problem.verdict == Verdict.INACCURATE.value and not everywhere else ""


def _topic(clauses: Sequence[str]) -> str:
    """The subject of the clauses that a fault breaks; empty where they are about several things, or nothing tells."""
    topics = set()
    for clause in clauses:
        first, _, rest = topic_of(clause).partition(".")
        name = "".join(word.capitalize() for word in rest.split("-"))  # a function's, as it stands in activations
        plain = _TOPICS.get(first, first.replace("-", " "))
        topics.add(name if first == "functions" else _TOPICS.get(f"{first}.{rest}", plain))
    return topics.pop() if len(topics) == 1 else ""


def _where(*problems: ShortFinding) -> str:
    operators = list(dict.fromkeys(op for p in problems for op in p.operators))
    types = list(dict.fromkeys(t for p in problems for t in p.types))
    return "; ".join(filter(None, [listed(operators), ", ".join(types)]))


def _bare(problem: ShortFinding) -> str:
    """The event in a title, without the condition that the title ends with."""
    title = in_words(problem.title, problem.verdict, problem.reason)
    if problem.conditions:
        for known in ("with", "seen with", "seen only with"):
            title = title.removesuffix(f" ({known} {problem.conditions})")
    return title


def _small(title: str) -> str:
    """A title in the middle of a sentence; names of inputs and attributes keep their form."""
    first = _first_word(title)
    return title[:1].lower() + title[1:] if first.isalpha() and not first.isupper() else title


_INACCURATE = "inaccurate (no better than "
"""The beginning of a title that names the accuracy class by which results are right."""


def in_words(title: str, verdict: str, reason: str) -> str:
    """A finding's title for people: ``wrong (value) with clip`` is ``Wrong values with clip``."""
    # By which id a fault is known, and how often it foretold results, is for those who open the finding.
    title = re.sub(r" \([\w.-]+, which foretold \d+ fresh cases\)", "", title)
    title = re.sub(r", consistent with [\w.-]+: ", ", as if this were done: ", title)
    lost = title.removeprefix(_INACCURATE)
    if lost != title:
        wider, _, rest = lost.partition(")")
        return f"{happening(verdict, 'value')}, right only by {wider}{rest}"
    happens = word(verdict).happens
    for why, words in happens.items():
        short = short_title(verdict, why)
        if title == short or title.startswith((f"{short} with ", f"{short} (", f"{short}, ")):
            return words + title[len(short) :]
    if reason and title.startswith(short_title(verdict, reason)) and "" in happens:
        return happens[""] + title[len(short_title(verdict, reason)) :]
    # A name from the documents keeps its form: input_forget, Y.
    return title[:1].upper() + title[1:] if _first_word(title).isalpha() else title


def _first_word(title: str) -> str:
    return title.split(" ", 1)[0].rstrip(",:;")
