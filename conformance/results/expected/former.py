"""Words that lists of known failures had in onnxspec 0.2: read as those of today, with a line that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEYS = {"deviations": "faults"}
_VERDICTS = {"accepted": "not-rejected", "impure": "input-modified"}
_NO_FAILURE = "fell-back"
"""A verdict of 0.2: what a provider leaves to another one fails nothing any more, so an entry that expects it has
nothing to say."""


class FormerWords(UserWarning):
    """A list has words of 0.2; the text names the file, the words, and what they are read as."""


def in_words_of_today(row: Mapping[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """An entry of a list in today's words, None where nothing of it is left, and what was changed, each in words."""
    changes = [f"{old} as {new}" for old, new in _KEYS.items() if old in row and new not in row]
    entry = {_KEYS.get(key, key) if _KEYS.get(key) not in row else key: value for key, value in row.items()}
    verdicts = entry.get("verdicts")
    if not isinstance(verdicts, list):
        return entry, changes
    changes += [f"{old} as {new}" for old, new in _VERDICTS.items() if old in verdicts]
    entry["verdicts"] = [_VERDICTS.get(v, v) if isinstance(v, str) else v for v in verdicts if v != _NO_FAILURE]
    if _NO_FAILURE in verdicts:
        changes.append(f"{_NO_FAILURE} as nothing, since a fallback is no failure any more")
    return (entry if entry["verdicts"] or not verdicts else None), changes
