"""Trees of generated test-case directories, and the manifest of their contents and origin."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ...reference.operators.mishap import told_mishap
from ..specs.case import Spec
from ..specs.family import build_case, clauses_exercised
from .directory import ATOL, RTOL, write_directory
from .fairness import Fairness, data_sets_of, fairness_of

MANIFEST = "manifest.json"
LICENCE = "Apache-2.0"
SCHEMA = 1

# Folders that are not finished begin like this, also after a process that was killed.
_ASIDE = ".onnxspec-"

# By whose conforming arithmetic a case must be fair: that of a target which declares nothing.
ACCURACY = "standard"


class ManifestError(ValueError):
    """A folder has no usable manifest; the message says why, in one line."""


class OccupiedTree(Exception):
    """The folder to generate into holds something."""


@dataclass(frozen=True)
class Origin:
    """The way in which a tree was made.

    command
        The command that makes the same tree; the folder is called DIR in it.
    version
        Of onnxspec.
    profile
        Name of the profile from which cases were selected; ``digests`` holds its digest by operator version.
    """

    command: str
    version: str
    profile: str
    digests: Mapping[str, str]


NOT_BUILT = "not built, which is the suite's fault or the operator's: "
"""Beginning of the reason for cases that an exception left out."""


@dataclass(frozen=True)
class Problem:
    """A difference from the manifest: ``kind`` is changed, missing or extra, ``path`` counts from the tree's folder."""

    kind: str
    path: str


def folder_name(spec: Spec) -> str:
    """Return the folder name of a case. onnx.backend.test accepts only names that begin with ``test_``."""
    return f"test_{spec.id}"


def generate(
    folder: Path, specs: Iterable[Spec], origin: Origin, *, everything: bool = False, overwrite: bool = False
) -> dict[str, Any]:
    """Write cases as test-case directories below `folder`; return their manifest.

    everything
        Also cases that a fixed tolerance does not judge fairly.
    overwrite
        Replace a tree that was generated there; other files stay.

    Everything is written to a temporary folder first, so an error leaves the folder as it was. Raise OccupiedTree for a
    folder that holds a tree or other files, OSError if it cannot be written.
    """
    old = _listed_before(folder, overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=folder))
    try:
        manifest = _write(aside, specs, origin, everything)
        (aside / MANIFEST).write_bytes(_encoded(manifest))
        _keep_clear(folder, [entry["folder"] for entry in manifest["cases"]], {MANIFEST, *old})
        for path in (MANIFEST, *old):
            (folder / path).unlink(missing_ok=True)
        _prune(folder, old)
        # The manifest comes last: where it is, all that it lists is there too.
        for entry in manifest["cases"]:
            place = folder / entry["folder"]
            if place.exists():  # empty folders are left of it at most
                shutil.rmtree(place)
            os.replace(aside / entry["folder"], place)
        os.replace(aside / MANIFEST, folder / MANIFEST)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return manifest


def _listed_before(folder: Path, overwrite: bool) -> list[str]:
    """Return the files of the tree to be replaced, except those behind a link; none if the folder is new or empty."""
    if not folder.exists() or (folder.is_dir() and all(p.name.startswith(_ASIDE) for p in folder.iterdir())):
        return []
    try:
        old = [path for path in _files(_read(folder)) if _is_own(folder, folder / path)]
    except ManifestError:
        raise OccupiedTree(f"{folder} holds other things than generated cases: give a new or empty folder") from None
    if not overwrite:
        raise OccupiedTree(f"{folder} already holds generated cases: replace them with --overwrite")
    return old


def _keep_clear(folder: Path, names: Sequence[str], own: Set[str]) -> None:
    """Raise OccupiedTree where a folder that is to be written holds files other than our own."""
    for path in _present(folder):
        if path not in own and PurePosixPath(path).parts[0] in names:
            raise OccupiedTree(f"{folder / path} is no generated file, and its folder would be replaced: move it away")


def _prune(folder: Path, paths: Sequence[str]) -> None:
    """Remove the folders of removed files that are empty now."""
    parents = {parent for path in paths for parent in PurePosixPath(path).parents if parent.name}
    for parent in sorted(parents, key=lambda p: -len(p.parts)):
        with contextlib.suppress(OSError):
            (folder / parent).rmdir()


def _write(folder: Path, specs: Iterable[Spec], origin: Origin, everything: bool) -> dict[str, Any]:
    written, left_out = [], []
    for spec in specs:
        identity = {"case": spec.id, "op": spec.op, "version": spec.version, "type": spec.type}
        try:
            entry = _entry(folder, spec, everything)
        except OSError:
            raise
        except Exception as error:  # whatever it is, it is ours or the operator's, and costs this case alone
            shutil.rmtree(folder / folder_name(spec), ignore_errors=True)
            entry = f"{NOT_BUILT}{told_mishap(error)}"
        if isinstance(entry, str):
            left_out.append({**identity, "reason": entry})
        else:
            written.append({**identity, **entry})
    manifest = {
        "schema": SCHEMA,
        "licence": LICENCE,
        "made": {
            "command": origin.command,
            "onnxspec": origin.version,
            "profile": origin.profile,
            "digests": dict(origin.digests),
        },
        "tolerance": {"rtol": RTOL, "atol": ATOL},
        "accuracy": ACCURACY,
        "cases": written,
        "left_out": left_out,
    }
    return {**manifest, "sha256": _own_digest(manifest)}


def _entry(folder: Path, spec: Spec, everything: bool) -> dict[str, Any] | str:
    """Write a case and return its entry in the manifest, or the entry of a case that is left out."""
    if spec.illegal:
        return "the document forbids the model: there are no outputs to expect"
    case = build_case(spec)
    if case.trial.course is not None:
        return "its sessions do more than run one data set after the other, which no directory can say"
    if case.trial.graph is not None:
        return "its model has several nodes, and a directory says of one what its results may be"
    data_sets = data_sets_of(case.trial)
    fairness = fairness_of(case, data_sets, ACCURACY)
    if fairness.reason and not everything:
        return fairness.reason
    name = folder_name(spec)
    paths = write_directory(folder / name, case.trial.model, data_sets)
    files = {path.relative_to(folder).as_posix(): _digest(path) for path in paths}
    return {"folder": name, **_described(spec, fairness), "files": files}


def _described(spec: Spec, fairness: Fairness) -> dict[str, Any]:
    return {
        "clauses": [clause.id for clause in clauses_exercised(spec)],
        "accuracy": ACCURACY,
        # Three digits, and none below a millionth: the last ones of a radius are those of a machine's matrix product.
        "radius": {"output": fairness.output, "of_tolerance": round(float(f"{fairness.largest:.3g}"), 6)},
        "fair": not fairness.reason,
        **({"reason": fairness.reason} if fairness.reason else {}),
        "spec": spec.to_json(),
    }


def _encoded(manifest: Mapping[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1, allow_nan=False) + "\n").encode("utf-8")


def _own_digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest's canonical form, without this digest itself."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _digest(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            total.update(chunk)
    return total.hexdigest()


def verify(folder: Path) -> list[Problem]:
    """Return the differences from the generated files, sorted by path; empty if every byte is unchanged.

    Raise ManifestError if the folder has no readable manifest.
    """
    manifest = _read(folder)
    listed = _files(manifest)
    problems = [Problem("changed", MANIFEST)] if _own_digest(manifest) != manifest.get("sha256") else []
    for path, digest in listed.items():
        file = folder / path
        try:
            if not os.path.lexists(file):
                problems.append(Problem("missing", path))
            elif not _is_own(folder, file) or _digest(file) != digest:
                problems.append(Problem("changed", path))
        except OSError:  # what cannot be read is not what was generated
            problems.append(Problem("changed", path))
    problems += [Problem("extra", path) for path in _present(folder) if path not in listed and path != MANIFEST]
    return sorted(problems, key=lambda problem: problem.path)


def _is_own(folder: Path, file: Path) -> bool:
    """Tell whether a file is a plain one of the tree itself, not one that a link leads to."""
    within = file.relative_to(folder)
    return file.is_file() and not any((folder / p).is_symlink() for p in (within, *within.parents[:-1]))


def _present(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in (*files, *links):
            yield Path(place, name).relative_to(folder).as_posix()


def _read(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_bytes())
        _own_digest(content if isinstance(content, dict) else {})  # what nests too deeply to be written shows here
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise ManifestError(f"{path}: is no JSON; is it cut off?") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise ManifestError(f"{path}: is no manifest of schema {SCHEMA}")
    return content


def _files(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Path to digest of every file that a manifest lists."""
    try:
        files = {str(path): str(digest) for entry in manifest["cases"] for path, digest in entry["files"].items()}
    except (KeyError, TypeError, AttributeError):
        raise ManifestError(f"{MANIFEST}: has no list of cases with their files") from None
    for path in files:
        pure = PurePosixPath(path)
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise ManifestError(f"{MANIFEST}: lists {path!r}, which no file can be called") from None
        if pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path or not pure.name:
            raise ManifestError(f"{MANIFEST}: lists {path!r}, which is not inside the folder")
    return files
