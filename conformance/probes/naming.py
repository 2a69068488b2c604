"""Names of cases: an id or a pattern of ids, the JSON of a spec, a test-case directory, or a file of such lines."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from glob import glob, has_magic
from pathlib import Path

from ...cases.portable import CaseTextError, case_from_json
from ...reference.documents.operators import MISSING
from ...reference.errors import DirectoryError, UserError
from ..border.strict_json import MalformedJson, parse
from .probe import Probe, SpecProbe

_LONGEST = 200
_FEW = 20  # with more names, listing some that are not similar does not help
_LONGEST_TEXT = 2**16
_WHOLE_ID = re.compile(r"\.[0-9a-f]{6}$")


class UnknownName(UserError):
    """A name that does not exist; the message has the name and the nearest existing ones, in one line."""

    def __init__(self, kind: str, given: object, known: Sequence[object], among: str = "", hint: str = "") -> None:
        """Compose the message; `among` describes the searched set, if it is not everything; `hint` is a suggestion."""
        name = str(given)
        text = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."
        near = _nearest(name, known)
        lists = "; 'onnxspec list' shows all" if kind == "case" else ""
        if kind == "case" and len(name) <= _LONGEST and os.path.isdir(name):
            lists = f"; a folder of that name is .{os.sep}{text}"
        help = f"nearest: {', '.join(near)}" if near else f"none is like it{lists}"
        if kind == "operator":
            help = MISSING.get(name, help)
        if kind == "case" and _WHOLE_ID.search(name):
            hint = hint or "smallest and random cases are in no profile: give the JSON that the finding's command has"
        super().__init__("; ".join(filter(None, (f"unknown {kind} {text!r}{among}", help, hint))))


def _nearest(given: str, known: Sequence[object]) -> list[str]:
    if given.isdecimal() and len(given) < 10 and all(isinstance(k, int) for k in known):
        return [str(k) for k in sorted(known, key=lambda k: abs(int(str(k)) - int(given)))[:3]]
    folded = {str(k).lower(): str(k) for k in known}
    near = difflib.get_close_matches(given.lower(), folded, 3, 0.5)
    return [folded[n] for n in near] or ([str(k) for k in known[:6]] if len(known) <= _FEW else [])


def require_known(kind: str, names: Iterable[object], known: Sequence[object], among: str = "") -> None:
    """Raise UnknownName for the first name that is not known."""
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known, among)


def is_portable(word: str) -> bool:
    """Return whether a word is the case itself (JSON or the path of a directory) and not its id. No id has a slash."""
    return word.startswith("{") or "/" in word or os.sep in word or word in (".", "..")


def is_folder(word: str) -> bool:
    """Return whether a word is the path of a directory, which need not exist."""
    return is_portable(word) and not word.startswith("{")


def expanded(words: Iterable[str], base: Path | None = None) -> tuple[str, ...]:
    """Return the words with each ``@FILE`` replaced by the lines of the file.

    Empty lines and lines that begin with # are left out. Relative paths start from `base`; in a file they start from
    that file's folder. Raise UserError for a file that cannot be read.
    """
    names: list[str] = []
    for word in words:
        if not word.startswith("@"):
            names += _matching_folders(_from(base, word))
            continue
        path = (base or Path()) / word[1:]
        for text in map(str.strip, _lines(path)):
            if text and not text.startswith("#"):
                names += _matching_folders(_from(path.parent, text))
    return tuple(names)


def _matching_folders(word: str) -> list[str]:
    """Return the folders that match a path with wildcards; any other word unchanged."""
    found = sorted(glob(word)) if is_folder(word) and has_magic(word) and not os.path.exists(word) else []
    return found or [word]


def _from(base: Path | None, word: str) -> str:
    """Return a word; if it is a path, it is made relative to the current folder."""
    if base is None or word.startswith("{") or not is_portable(word):
        return word
    path = str(base / word)
    return path if is_portable(path) else os.path.join(os.curdir, path)


def _lines(path: Path) -> Sequence[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UserError(f"{path}: no list of cases: {error.strerror or error}") from None
    except ValueError:
        raise UserError(f"{path}: no list of cases: it is not text in UTF-8") from None


def portable_probes(words: Iterable[str]) -> list[Probe]:
    """Return the probes of several words, without duplicates. Raise UserError, also for two different probes with the
    same id."""
    given = dict.fromkeys(words)
    return each_once(p for word in given for p in ([_of_text(word)] if word.startswith("{") else _of_directory(word)))


def each_once(probes: Iterable[Probe]) -> list[Probe]:
    """Return the probes without duplicates.

    Raise UserError for two different probes with the same id, because their results would be mixed up.
    """
    by_id: dict[str, Probe] = {}
    for probe in probes:
        if by_id.setdefault(probe.id, probe) != probe:
            raise UserError(f"two cases that differ have the id {probe.id}: run them apart")
    return list(by_id.values())


def _of_text(text: str) -> Probe:
    try:
        if len(text) > _LONGEST_TEXT:
            raise CaseTextError(f"its JSON has {_LONGEST_TEXT} characters at most, not {len(text)}")
        spec = case_from_json(parse(text))
    except (CaseTextError, MalformedJson) as error:
        raise UserError(f"no case: {error}, in {text[:80]!r}") from None
    return SpecProbe(spec, True)


def _of_directory(word: str) -> Sequence[Probe]:
    from .directory import probe_directories  # with the reader of directories, which few runs need

    path = Path(word)
    complaints: list[str] = []
    try:
        probes = probe_directories([path], complaints.append)
    except DirectoryError as error:
        raise UserError(str(error)) from None
    if not probes:
        raise UserError(complaints[0] if complaints else f"{path}: no test-case directory")
    return probes
