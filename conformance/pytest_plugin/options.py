"""Options of the pytest plugin, and ini values of the same names. Loads nothing of the suite."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "onnxspec.conformance"
"""Name of the suite for ``--pyargs``, with which ids of its items begin."""

# Name, metavar, whether it may be repeated, help.
_OPTIONS: tuple[tuple[str, str, bool, str], ...] = (
    ("target", "TARGET", True, "runtime to test: onnxruntime, onnxruntime:NAMEExecutionProvider, onnx-reference, "
     "backend:package.module, or a name from targets.toml"),
    ("profile", "NAME", False, "smoke, core, full, quantized, or random-N-seed-SEED: N random cases (default: core)"),
    ("op", "OP[-VERSION]", True, "only this operator, e.g. LSTM or LSTM-14"),
    ("type", "TYPE", True, "only this type: float16, bfloat16, float32, float64"),
    ("case", "CASE", True, "only this case: its id, in which * and ? are wildcards, its JSON, a test-case directory "
      "(./DIR), or =@FILE, a file of such lines"),
    ("expected", "FILE|none", False, "expected failures instead of the shipped ones; none: expect no failure"),
)  # fmt: skip


def add_options(parser: pytest.Parser) -> None:
    """Declare ``--onnxspec-NAME`` and the ini value ``onnxspec_name`` for every option."""
    group = parser.getgroup("onnxspec", "onnxspec: conformance of ONNX runtimes (pytest --pyargs onnxspec.conformance)")
    for name, metavar, repeatable, text in _OPTIONS:
        action, again = ("append", " (may be repeated)") if repeatable else ("store", "")
        group.addoption(f"--onnxspec-{name}", action=action, metavar=metavar, help=text + again)
        kind: Any = ("args", []) if repeatable else ("string", "")
        parser.addini(f"onnxspec_{name}", f"default of --onnxspec-{name}", *kind)


def option(config: pytest.Config, name: str) -> Any:
    """Return an option, or else the ini value of that name; a list for a repeatable option."""
    return config.getoption(f"onnxspec_{name}", None) or config.getini(f"onnxspec_{name}")


def takes_part(config: pytest.Config) -> bool:
    """Return whether some option or ini value is given."""
    return any(option(config, name) for name, *_ in _OPTIONS)


def target_names(config: pytest.Config) -> list[str]:
    """Return the names of the targets, each once."""
    return list(dict.fromkeys(option(config, "target") or ["onnxruntime"]))


def base_folder(config: pytest.Config, name: str) -> Path:
    """Return the folder to which a path is relative: the current one for the command line, that of the ini-file
    otherwise."""
    if config.getoption(f"onnxspec_{name}", None):
        return config.invocation_params.dir
    return config.inipath.parent if config.inipath is not None else config.rootpath


def targets_file(config: pytest.Config) -> Path | None:
    """Return the file of named targets, or None."""
    folders = (config.invocation_params.dir, config.rootpath)
    return next((f / "targets.toml" for f in folders if (f / "targets.toml").is_file()), None)


def worker_path(config: pytest.Config) -> str:
    """Return the PYTHONPATH of workers; empty if they inherit it.

    pytest's ini value ``pythonpath`` changes sys.path of its own process alone.
    """
    try:
        folders = config.getini("pythonpath")
    except (KeyError, ValueError):  # the plugin that declares it is switched off
        return ""
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    return os.pathsep.join([*map(os.fspath, folders), *inherited]) if folders else ""
