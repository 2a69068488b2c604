"""Writer of the profiles' files: `python -m onnxspec.cases.write_profiles`.

To add a case, append its line to a file in ``cases/profiles`` (``core.jsonl``, and ``smoke.jsonl`` or
``quantized.jsonl`` as fits), then run this module and review the difference. The line is the JSON of the case, as
`onnxspec list --json`, a finding's ``case.json`` and `fuzz` print it::

    {"op":"GRU","version":14,"type":"float32","T":3,"H":4,"lengths":"ragged"}

Only fields that differ from their defaults are needed. The writer checks that each case can be built, that no case
occurs twice and that ``core`` contains ``smoke``. It sorts cases by operator version, with those last that may corrupt
memory, and writes digests.json: the same profile name with another digest means other cases. Run it in an environment
without operators of your own, because it writes their digests, too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from .portable import case_from_json, case_text
from .profiles import FILES, PROFILES, digest_of, profile
from .specs.family import operator_versions

_FOLDER = Path(__file__).parent / "profiles"


def main() -> None:
    """Rewrite the files and digests.json."""
    written = {name: _rewrite(_FOLDER / f"{name}.jsonl") for name in FILES}
    if missing := written["smoke"] - written["core"]:
        raise SystemExit(f"core.jsonl lacks a case of smoke.jsonl: {min(missing)}")
    digests = {
        name: {f"{op}-{version}": digest_of(profile(name, op, version)) for op, version in operator_versions(None)}
        for name in PROFILES
    }
    (_FOLDER / "digests.json").write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")


def _rewrite(path: Path) -> set[str]:
    """Check a file, rewrite it in order, and return the texts of its cases."""
    by_version: dict[tuple[str, int], list[Any]] = defaultdict(list)
    texts: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            spec = case_from_json(json.loads(line))
        except ValueError as error:
            raise SystemExit(f"{path.name}:{number}: {error}") from None
        if case_text(spec) in texts:
            raise SystemExit(f"{path.name}:{number}: the case stands there twice")
        texts.add(case_text(spec))
        by_version[spec.op, spec.version].append(spec)
    ordered = (sorted(by_version[key], key=lambda spec: spec.spoils) for key in operator_versions(None))
    lines = (case_text(spec) + "\n" for specs in ordered for spec in specs)
    path.write_text("".join(lines), encoding="utf-8")
    return texts


if __name__ == "__main__":
    main()
