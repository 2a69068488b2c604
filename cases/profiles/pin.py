"""Pin the profiles: `python -m onnxspec.cases.profiles.pin` writes their digests beside this module.

To be run, and its result to be reviewed, when a profile is meant to change: what a profile is called then means other
cases than before.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..specs.family import operator_versions
from .profiles import PROFILES, digest_of, profile


def main() -> None:
    """Write digests.json."""
    pinned = {
        name: {f"{op}-{version}": digest_of(profile(name, op, version)) for op, version in operator_versions(None)}
        for name in PROFILES
    }
    Path(__file__).with_name("digests.json").write_text(json.dumps(pinned, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
