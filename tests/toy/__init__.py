"""Invented operators, to test the work that a new operator takes; ``leaky_operator`` is that of docs/operators.md."""

import atexit
import re
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def documented(folder: Path, *changes: tuple[str, str]) -> int:
    """Write the files of docs/operators.md to a folder, with changes, and return their number."""
    text = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    for old, new in changes:
        text = text.replace(old, new)
    blocks = re.findall(r"^```\w+\n# (\S+/\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for name, block in blocks:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(block, encoding="utf-8")
    return len(blocks)


_folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
documented(Path(_folder), ("leaky.example", "toy.example"))
__path__.append(_folder)
