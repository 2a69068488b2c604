"""Command lines of this version in the form of v0.4.0, for comparisons that run both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def as_v0_4(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command with the options of v0.4.0."""
    command, *rest = arguments
    return [command, *_translated(iter(rest))]


def _translated(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if word == "--no-extra":
            yield from ("--no-shrink", "--no-fill")
        elif word == "--op":
            name, dash, version = next(words).rpartition("-")
            yield from ("--op", name, "--since-version", version) if dash else ("--op", version)
        elif word == "--random":
            count, colon, seed = next(words).partition(":")
            yield from ("--random", count, *(("--seed", seed) if colon else ()))
        elif word == "--expected":
            name = next(words)
            yield from ("--no-expected",) if name == "none" else ("--expected-file", name)
        elif word == "--case":
            name = next(words)
            yield from ("--cases" if "/" in name and not name.startswith("{") else "--case", name)
        else:
            yield word
