"""Errors that a person can mend: a command prints the message, one line, and ends with the error's exit code."""

from __future__ import annotations

from typing import ClassVar


class UserError(ValueError):
    """A request that cannot be carried out; the message names the fault, the place and the reason in one line.

    given
        The part of the request that is meant, if it came from a list.
    """

    code: ClassVar[int] = 2

    def __init__(self, message: str, given: str = "") -> None:
        super().__init__(message)
        self.given = given


class DirectoryError(UserError):
    """A test-case directory that cannot be used; the message gives the file and the reason."""


class RecordError(UserError):
    """A run, a package or a database that cannot be used."""
