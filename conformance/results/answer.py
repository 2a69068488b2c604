"""The answer on a target, for whoever must decide: does it conform, did it change, what does it support, whom does it
hit. The terminal and the report say it in the same words, which are made here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...reference import topic_of
from ..judging.judgement import FAILING, OF_FORBIDDEN, Verdict
from ..judging.vocabulary import NO_FAILURE, happening, short_title, word
from .support import DECLINED, Lack, ResultsAlike, ShortFinding, listed, support_of

_FAILING = frozenset(verdict.value for verdict in FAILING)
_FORBIDDEN = Verdict.NOT_REJECTED.value

_NOTHING_NEW = "no failure beyond it"

_LOOK = "smoke"
"""The profile, with or without a nonce behind it, that says little of a target by being right: some 60 cases."""

FEW = 0.1
"""Up to this share of judged results, failures that are all known are called few. The figure is a choice: it colours a
badge, and the counts stand in it."""


@dataclass(frozen=True)
class Hit:
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
    problems: tuple[int, ...]
    forbidden: bool = False

    @property
    def text(self) -> str:
        """Both in one line."""
        return f"{self.on}: {_small(self.what)}" if self.on else self.what


@dataclass(frozen=True)
class Answer:
    """The first lines of what is told of a target.

    ``state`` is ``conforms``, ``few`` (failures that are known, and few), ``lacks`` (chosen cases of which some are not
    supported), ``departs`` or ``open`` (nobody knows); ``badge`` says all of it in a few words. ``coverage`` says how
    far the cases reach; empty where that is not counted. ``chosen`` is whether the cases were chosen one by one, or are
    a model's nodes: nothing follows for others. ``compared`` is whether a list of known failures was asked, ``shared``
    whether some cases have several causes, so that several hits count them.
    """

    state: str
    badge: str
    conforms: str
    since: str
    supports: tuple[str, ...]
    lacks: tuple[Lack, ...]
    hits: tuple[Hit, ...]
    coverage: str = ""
    follows: str = ""
    shown: str = ""
    chosen: bool = False
    compared: bool = True
    shared: bool = False

    @property
    def question(self) -> str:
        """The question that ``conforms`` answers, as a heading."""
        return "Of these cases" if self.chosen else "Conforms"

    @property
    def who(self) -> str:
        """The heading of what fails."""
        words = "What fails" if self.chosen else "It affects you if your model uses"
        return f"{words} (a case with several causes counts in each)" if self.shared else words

    @property
    def conforming(self) -> bool | None:
        """Tell whether it conforms; None where nobody knows."""
        return None if self.state in ("open", "lacks") else self.state == "conforms"

    @property
    def comparison(self) -> str:
        """The line on its list of known failures; empty where that has nothing to say: nothing failed, or the cases
        were chosen."""
        nothing = self.chosen or self.state in ("conforms", "open")
        return "" if nothing and self.since == _NOTHING_NEW else self.since

    @property
    def relied_on(self) -> tuple[Hit, ...]:
        """The hits by models that are legal."""
        return tuple(hit for hit in self.hits if not hit.forbidden)

    @property
    def validation(self) -> tuple[Hit, ...]:
        """The hits by models that run though they must be rejected: nothing is computed wrongly there."""
        return tuple(hit for hit in self.hits if hit.forbidden)

    @property
    def supported(self) -> str:
        """The supported operators and types, in a line."""
        return "; ".join(self.supports) or "nothing that was tried"

    @property
    def lacking(self) -> str:
        """The features that are not supported, in a line; empty where nothing is lacking."""
        return ", ".join(lack.what for lack in self.lacks)


def answer_of(
    tried: Sequence[ResultsAlike],
    problems: Sequence[ShortFinding],
    *,
    stale: int = 0,
    lists_used: bool = True,
    coverage: str = "",
    follows: str = "",
    shown: str = "",
    look: str = "",
    chosen: bool = False,
) -> Answer:
    """The answer that the results and findings of one target give.

    stale
        How many entries of the target's list of known failures nothing needs any more.
    lists_used
        Whether lists of known failures were used at all.
    follows, shown
        Which interpretations it follows against a letter, and how much its bounds show
        (:mod:`.interpreted`), in a line each.
    coverage
        How far the cases reach, in a line (:func:`.coverage.coverage_line`).
    look
        The profile that was run, where it is too small to conclude much from (:func:`look_of`).
    chosen
        Whether the cases were chosen one by one.
    """
    failed = sum(t.times for t in tried if t.verdict in _FAILING - DECLINED)
    judged = failed + sum(t.times for t in tried if t.verdict == Verdict.PASS.value)
    # A fallback is no failure of arithmetic; where it fails the run, it is news all the same.
    new = sum(t.times for t in tried if t.verdict in _FAILING and not t.expected)
    known = sum(t.times for t in tried if t.verdict in _FAILING - DECLINED and t.expected)
    supports, lacks = support_of(tried, problems)
    left_out = sum(t.times for t in tried if t.verdict == Verdict.NOT_RUN.value)
    unjudged = sum(t.times for t in tried if t.verdict == Verdict.NOT_JUDGED.value)
    open_words = [f"{left_out:,} were not run"] if left_out else []
    open_words += [f"{unjudged:,} could not be judged"] if unjudged else []
    broke = sum(t.times for t in tried if t.verdict == Verdict.UNSUPPORTED.value and not t.clean)
    declined = sum(t.times for t in tried if t.verdict in DECLINED)
    started = not tried or any(t.verdict != Verdict.UNAVAILABLE.value for t in tried)
    remark = ""
    if lists_used:
        some = ", all new" if new >= failed > 1 else f", {new:,} new"
        remark = some if new else ", all known"
    # A target that refuses everything refuses forbidden models, too.
    telling = [t for t in tried if t.reason not in OF_FORBIDDEN] or tried
    if not failed and not any(t.verdict == Verdict.PASS.value for t in telling):
        state, badge = "open", "Nothing was judged" if started else "Could not start"
        conforms = "unknown, nothing was judged" if started else "unknown, it could not start"
    elif not failed and (open_words or broke):
        state = "open"
        badge = f"{left_out:,} not run" if left_out else f"Unknown, {broke:,} broke off"
        badge = f"{unjudged:,} not judged" if unjudged else badge
        unknown = [*open_words, *([f"{broke:,} broke off in place of a clean refusal"] if broke else [])]
        conforms = f"unknown ({', '.join(unknown)}, all {judged:,} judged are right)"
    elif not failed:
        right = f"all {judged:,} judged are right" if judged > 1 else "the one judged is right"
        lacking = f"{declined:,} of {judged + declined:,} not supported"
        state, badge = "conforms", f"{'Right' if chosen else 'Conforms'}, {judged:,} judged"
        conforms = right if chosen else f"yes ({right})"
        if look:
            badge = f"Conforms in {look}, {judged:,} judged"
            conforms = f"passes {look}, a small sample ({right}; run core)"
        if chosen and declined:
            state, badge, conforms = "lacks", lacking[:1].upper() + lacking[1:], f"{lacking}, {right}"
    else:
        state = "few" if lists_used and not new and failed <= FEW * judged else "departs"
        badge = f"{_percent(failed, judged)} fail{remark}".capitalize()
        failing = f"{failed:,} of {judged:,} judged {'fails' if failed == 1 else 'fail'}"
        failing += "".join(f", {words}" for words in open_words)
        failing += f", {declined:,} not supported" if chosen and declined else ""
        conforms = failing if chosen else f"no ({failing})"
    since = _since(new, known, stale) if lists_used else "not compared, lists of known failures were left out"
    since = since if started else ""
    hits = tuple(_hits(problems, tried))
    told = coverage, follows, shown
    shared = sum(hit.cases for hit in hits) > failed
    return Answer(state, badge, conforms, since, supports, lacks, hits, *told, chosen, lists_used, shared)


def look_of(profile: str, chosen: Sequence[str]) -> str:
    """The profile of a run where it is no more than a first look; empty otherwise, and where cases were chosen."""
    return _LOOK if profile.startswith(_LOOK) and not chosen else ""


def _percent(part: int, whole: int) -> str:
    """A share that never rounds to nothing or to all."""
    share = 100 * part / whole
    return "all" if part == whole else "under 1 %" if share < 1 else f"{min(round(share), 99)} %"


def _since(new: int, known: int, stale: int) -> str:
    words = _NOTHING_NEW
    if new:
        words = f"{new:,} new failure{'' if new == 1 else 's'}, {f'{known:,} known' if known else 'none known before'}"
    if stale:
        words += f"; {stale} known failure{' no longer shows' if stale == 1 else 's no longer show'}"
    return words


def _hits(problems: Sequence[ShortFinding], tried: Sequence[ResultsAlike]) -> Iterator[Hit]:
    """The hits of the failures: what is new before what is known, what has many cases before what has few. What is
    known to be accepted though it is forbidden is one, as it hits only those who count on a refusal."""
    failing = [k for k, p in enumerate(problems) if p.verdict not in DECLINED and p.kind not in NO_FAILURE]
    taken = [k for k in failing if problems[k].kind == _FORBIDDEN and problems[k].expected]
    # Users who deploy a model ask what becomes of it first, and last whether invalid ones run.
    order = {k: (problems[k].expected, problems[k].kind == _FORBIDDEN, -problems[k].cases) for k in failing}
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
        yield Hit(on, what, why, _where(*members), expected, sum(p.cases for p in members), tuple(places), forbidden)
    if taken:
        cases = sum(problems[k].cases for k in taken)
        what = f"{cases:,} of them ran"
        where = _where(*(problems[k] for k in taken))
        yield Hit("invalid models being rejected", what, "", where, True, cases, tuple(taken), True)


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
    failed = sum(t.times for t in ran if t.verdict in _FAILING)
    if ran and failed == problem.cases and all(t.verdict != Verdict.PASS.value for t in ran):
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
    first = title.split(" ", 1)[0]
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
    return title[:1].upper() + title[1:] if title.split(" ", 1)[0].isalpha() else title
