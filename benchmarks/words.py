"""Word counts of documents and docstrings, with the rate of "what": ``python -m benchmarks.words``.

"What" as a noun ("what is not said") is the mark of prose that is hard to read; the goal is at most 2 in 1,000 words.
Pages are counted whole, except the rules of tables; the rate is that of their prose, without blocks of code.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
PACKAGES = ("reference", "cases", "conformance", "reports", "benchmarks", "tests")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def rate(text: str) -> tuple[int, float]:
    """Return the number of words of a text, and "what" per 1,000 of them."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return len(words), 1000 * words.count("what") / max(len(words), 1)


def length(text: str) -> int:
    """Return the number of words of a page, including those of its code."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def docstrings(folder: Path) -> Iterator[str]:
    """Yield every docstring of modules, classes and functions below a folder."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
                yield text


def main(root: Path) -> None:
    """Print a line for each page, then one for the docstrings of each package."""
    print(f"{'page':34}{'words':>8}{'what per 1,000':>16}")
    prose = []
    pages = [*sorted((root / "docs").glob("*.md")), *(root / name for name in PAGES)]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        without_code = FENCED.sub("", text)
        prose.append(without_code)
        print(f"{path.relative_to(root).as_posix():34}{length(text):>8}{rate(without_code)[1]:>16.1f}")
    in_docs = [path for path in pages if path.parent.name == "docs"]
    total = sum(length(path.read_text(encoding="utf-8")) for path in in_docs)
    print(f"{'docs':34}{total:>8}{rate(' '.join(prose[: len(in_docs)]))[1]:>16.1f}\n")
    print(f"{'docstrings of':34}{'words':>8}{'what per 1,000':>16}")
    for package in PACKAGES:
        count, of_what = rate(" ".join(docstrings(root / package)))
        print(f"{package:34}{count:>8}{of_what:>16.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
