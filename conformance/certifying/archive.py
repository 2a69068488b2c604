"""Package file: a zip whose members are named, counted and bounded before any of them is unpacked."""

from __future__ import annotations

import hashlib
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from ...reference.errors import UserError

MOST_FILES = 4000
MOST_BYTES = 1 << 30
"""Bytes of all files of a package; `full` of onnxruntime takes 80 MB."""
MOST_FILE = 512 << 20
MOST_RATIO = 1000
"""Largest ratio of a file's size to its packed size, beyond the first MiB: results.jsonl of a target that refuses
everything shrinks to a 60th, zeros to a thousandth."""

_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.,+-]{0,150}(/[A-Za-z0-9_+-][A-Za-z0-9_.,+-]{0,150}){0,5}")
_DAY = (1980, 1, 1, 0, 0, 0)  # the first that a zip knows: equal content is equal bytes
_BLOCK = 1 << 20
# The three forms of APPNOTE.TXT, the description of zips: before each file, its line in the directory, the end of that.
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_VERSION, _MADE_BY, _FIRST_DAY = 20, 3 << 8 | 20, 1 << 5 | 1
_PLAIN_FILE = 0o100644 << 16


class Package:
    """The files of a package, unpacked into a folder."""

    def __init__(self, path: Path, folder: Path, names: Sequence[str], sha256: str, size: int) -> None:
        self.path = path
        self.folder = folder
        self.names = tuple(names)
        self.sha256 = sha256
        self.size = size

    def content(self, name: str) -> bytes:
        """Return the content of a file. Raise UserError if it is missing."""
        if name not in self.names:
            raise UserError(f"{self.path}: {name} is missing")
        return (self.folder / name).read_bytes()


def write_package(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files, by their paths in the package. Raises OSError."""
    beside = path.with_name(f"{path.name}.new")
    try:
        with zipfile.ZipFile(beside, "w") as archive:
            for name in sorted(files):
                entry = zipfile.ZipInfo(name, _DAY)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = _PLAIN_FILE
                entry.create_system = 3
                archive.writestr(entry, files[name], compresslevel=9)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_package(path: Path, folder: Path) -> Package:
    """Unpack a package into an empty folder, once its directory is within bounds.

    Raise UserError, and OSError if the file cannot be read or the folder not be written.
    """
    if path.stat().st_size > MOST_BYTES:
        raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB")
    with path.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
            entries = archive.infolist()
            _bound(path, entries)
            _require_plain(path, file, archive, entries)
            for entry in entries:
                _unpack(path, archive, entry, folder / entry.filename)
        except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, RuntimeError) as error:
            raise UserError(f"{path}: no zip that can be read: {error}") from None
        file.seek(0)
        digest = hashlib.sha256()
        for block in iter(lambda: file.read(_BLOCK), b""):
            digest.update(block)
        return Package(path, folder, [entry.filename for entry in entries], digest.hexdigest(), file.tell())


def _bound(path: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    """Raise UserError for a directory that promises too much, or files that no package holds."""
    if not 0 < len(entries) <= MOST_FILES:
        raise UserError(f"{path}: holds {len(entries):,} files, and may hold from one to {MOST_FILES:,}")
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        shown = ascii(name[:100])
        if not _NAME.fullmatch(name) or name != entry.orig_filename:
            raise UserError(f"{path}: no file of a package is called {shown}")
        if name.lower() in seen:
            raise UserError(f"{path}: holds {shown} twice")
        seen.add(name.lower())
        if entry.flag_bits or entry.compress_type not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            raise UserError(f"{path}: {shown} is encrypted, or packed in a way that packages are not")
        if entry.extra or entry.comment or (entry.external_attr >> 16) & 0o170000 not in (0, 0o100000):
            raise UserError(f"{path}: {shown} is no plain file")
        if entry.file_size > MOST_FILE:
            raise UserError(f"{path}: {shown} has more than {MOST_FILE >> 20} MiB")
        if entry.file_size > (1 << 20) + MOST_RATIO * entry.compress_size:
            raise UserError(f"{path}: {shown} grows to more than {MOST_RATIO} times its size")
    if any(parent in seen for name in seen for parent in _parents(name)):
        raise UserError(f"{path}: holds a file and a folder of one name")
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB when it is unpacked")


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _require_plain(path: Path, file: IO[bytes], archive: zipfile.ZipFile, entries: Sequence[zipfile.ZipInfo]) -> None:
    """Raise UserError unless all bytes but the content of files are as they are written here: the files one behind the
    other from the first byte on, the directory behind them, and nothing else. Then every reader of zips sees the same,
    and no byte can be changed unseen."""
    place, directory = 0, b""
    for entry in entries:
        name = entry.filename.encode()
        sizes = entry.CRC, entry.compress_size, entry.file_size
        common = (_VERSION, 0, entry.compress_type, 0, _FIRST_DAY, *sizes, len(name), 0)
        file.seek(place)
        if entry.header_offset != place or file.read(_LOCAL.size + len(name)) != _LOCAL.pack(b"PK\3\4", *common) + name:
            raise UserError(f"{path}: something stands before {entry.filename}, or it is not where the directory says")
        directory += _CENTRAL.pack(b"PK\1\2", _MADE_BY, *common, 0, 0, 0, _PLAIN_FILE, place) + name
        place += _LOCAL.size + len(name) + entry.compress_size
    count = len(entries)
    end = _END.pack(b"PK\5\6", 0, 0, count, count, len(directory), place, 0)
    file.seek(place)
    if archive.start_dir != place or file.read(len(directory) + len(end) + 1) != directory + end:
        raise UserError(f"{path}: there is something beside its files, or its directory is not as packages have it")


def _unpack(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, to: Path) -> None:
    """Write a file, with no byte more than the directory promises."""
    to.parent.mkdir(parents=True, exist_ok=True)
    left = entry.file_size
    with archive.open(entry) as source, to.open("xb") as target:
        while block := source.read(min(_BLOCK, left + 1)):
            left -= len(block)
            if left < 0:
                raise UserError(f"{path}: {entry.filename} is larger than it says")
            target.write(block)
    if left:
        raise UserError(f"{path}: {entry.filename} is smaller than it says")
