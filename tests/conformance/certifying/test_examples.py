"""Commands that examples/targets gives to users of GPUs and NPUs, run up to the device.

This machine replaces the containers and remote machines; its onnxruntime reports that it lacks their providers.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..miniatures import Finished

EXAMPLES = Path(__file__).parents[3] / "examples" / "targets"

# Runs locally the command of a container or a remote shell: the interpreter and its arguments.
STAND_IN = f"""#!{sys.executable}
import os, re, shlex, sys
words = [word for given in sys.argv[1:] for word in (shlex.split(given) if " " in given else [given])]
place = max(k for k, word in enumerate(words) if re.search(r"python(3|\\.exe)$", word))
os.execv({sys.executable!r}, [{sys.executable!r}, *words[place + 1 :]])
"""


def told(name: str, command: str) -> list[str]:
    """Return the words of the last such command in a file's comments."""
    lines = re.findall(rf"^#\s+(onnxspec {command} .*)$", (EXAMPLES / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert lines, f"{name} does not say how to {command}"
    return shlex.split(lines[-1])[1:]


PROVIDERS = {
    "migraphx.toml": "MIGraphXExecutionProvider",
    "rocm.toml": "ROCMExecutionProvider",
    "vitisai.toml": "VitisAIExecutionProvider",
}


@pytest.mark.skipif(sys.platform == "win32", reason="stands in for docker and ssh by scripts")
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_user_of_a_device_comes_as_far_as_the_device(
    name: str, inside: Callable[..., Finished], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for program in ("docker", "ssh"):
        (tmp_path / "bin" / program).write_text(STAND_IN, encoding="utf-8")
        (tmp_path / "bin" / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    run, certify, verify = (told(name, command) for command in ("run", "certify", "verify"))
    assert run[run.index("--out") + 1] == certify[1]
    assert verify == ["verify", certify[certify.index("--out") + 1], "--nonce", "NUMBER"]
    done = inside(*("17" if word == "NUMBER" else word for word in run), "--op", "RNN-7", "--type", "float32")
    assert done.code == 3, done.out + done.err
    assert f"has no {PROVIDERS[name]}" in done.out + done.err
