"""Pages of findings: one file each beside the report's page, with the files of the case for download."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ..conformance.judging.vocabulary import NO_FAILURE
from .evidence import Exhibit
from .findings import ASIDE, REFUSED, Finding

FOLDER = "findings"
MOST_PAGES = 200
"""Maximum number of findings with their own page. A run with more findings is broken as a whole."""

MOST_LISTED = 1000


def places_of(finding: Finding) -> list[tuple[str, str]]:
    """Return, for each member, the folders of its smallest and its larger case, relative to the finding's page."""
    return [
        (f"files/{finding.number:02d}-{k}", f"files/{finding.number:02d}-{k}-larger")
        for k in range(1, len(finding.members) + 1)
    ]


def write_pages(out: Path, pages: Iterator[tuple[Finding, str]]) -> None:
    """Write the pages and the files that they link to into ``out``/findings, replacing those of an earlier report.

    Raise OSError where that cannot be written, or where a folder of that name has other content.
    """
    with replaced_folder(out / FOLDER, ".onnxspec", "a report's findings") as folder:
        for finding, page in pages:
            (folder / PurePosixPath(finding.page).name).write_bytes(page.encode())
            for member, (small, larger) in zip(finding.members, places_of(finding), strict=True):
                _copy(member.exhibit, folder / small)
                _copy(member.larger, folder / larger)


@contextmanager
def replaced_folder(folder: Path, mark: str, content: str) -> Iterator[Path]:
    """Yield an empty folder that replaces ``folder`` when the context ends without an error.

    Raise FileExistsError where the folder has other content: not ``content``, which the file ``mark`` shows.
    """
    if folder.is_symlink() or (folder.is_dir() and any(folder.iterdir()) and not (folder / mark).is_file()):
        raise FileExistsError(17, f"it holds other things than {content}", str(folder))
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        (unfinished / mark).write_text("Written by onnxspec, which replaces this folder.\n", encoding="utf-8")
        yield unfinished
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _copy(exhibit: Exhibit | None, place: Path) -> None:
    """Copy the files of a case, so that a report can be sent without its run."""
    for name in exhibit.files if exhibit is not None else ():
        assert exhibit is not None
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(exhibit.folder / name, place / name, follow_symlinks=False)


def means(finding: Finding) -> str:
    """Return a few sentences on the verdict of a finding: its meaning, and whether it fails the run."""
    if finding.section == ASIDE:
        return f"{NO_FAILURE.get(finding.kind, finding.word.meaning)} This is not a failure."
    meaning = finding.word.meaning
    if finding.section == REFUSED:
        return f"{meaning} A model with such a node does not run there."
    if finding.known:
        return f"{meaning} It is on the list of known failures, so it does not fail the run."
    return f"{meaning} It is not on the list of known failures, so it fails the run."


def times_words(ratio: float) -> str:
    """Return a ratio as the end of a sentence."""
    if math.isinf(ratio) or math.isnan(ratio):
        return "more than any error bound allows"
    if ratio >= 1e9:
        return "more than a billion times the error bound"
    return (
        f"{ratio:,.3g} times the error bound" if ratio < 1000 else f"{float(f'{ratio:.2g}'):,.0f} times the error bound"
    )
