"""Options of the pytest plugin, and ini values of the same names. Loads nothing of the suite."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "onnxspec.conformance"
"""Name of the suite for ``--pyargs``, with which ids of its items begin."""

DEFAULT_TARGET = "onnxruntime"

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


@dataclass(frozen=True)
class Asked:
    """Request in options and ini values. Empty tuples mean all, as in a Selection.

    base
        The folder to which files of cases and directories are relative: that of the ini-file if it names them.
    expected
        The file of known failures; None for the shipped one of each target, or for none.
    expects
        False if no list of known failures is used.
    targets_file
        The file of named targets, or None.
    pythonpath
        Folders in which a module of a ``backend:`` target is searched, beside the caller's PYTHONPATH.
    """

    targets: tuple[str, ...]
    profile: str
    ops: tuple[str, ...]
    types: tuple[str, ...]
    cases: tuple[str, ...]
    base: Path
    expected: Path | None
    expects: bool
    targets_file: Path | None
    pythonpath: tuple[str, ...]


def add_options(parser: pytest.Parser) -> None:
    """Declare ``--onnxspec-NAME`` and the ini value ``onnxspec_name`` for every option."""
    group = parser.getgroup("onnxspec", "onnxspec: conformance of ONNX runtimes (pytest --pyargs onnxspec.conformance)")
    for name, metavar, repeatable, text in _OPTIONS:
        again = " (may be repeated)" if repeatable else ""
        group.addoption(
            f"--onnxspec-{name}",
            action="append" if repeatable else "store",
            default=None,
            metavar=metavar,
            help=text + again,
        )
        ini = f"onnxspec_{name}"
        if repeatable:
            parser.addini(ini, f"default of --onnxspec-{name}", type="args")
        else:
            parser.addini(ini, f"default of --onnxspec-{name}", default="")


def asked_for(config: pytest.Config) -> Asked | None:
    """Return the request: an option, else the ini value of that name. None if nothing is given."""
    given = {name: _value(config, name, repeatable) for name, _, repeatable, _ in _OPTIONS}
    if not any(given.values()):
        return None
    expected = given["expected"] or ""
    return Asked(
        targets=tuple(dict.fromkeys(given["target"] or (DEFAULT_TARGET,))),
        profile=given["profile"] or "core",
        ops=tuple(given["op"] or ()),
        types=tuple(given["type"] or ()),
        cases=tuple(given["case"] or ()),
        base=_base(config, "case"),
        expected=None if expected in ("", "none") else _base(config, "expected") / expected,
        expects=expected != "none",
        targets_file=_targets_file(config),
        pythonpath=_pythonpath(config),
    )


def _value(config: pytest.Config, name: str, repeatable: bool) -> Any:
    option = config.getoption(f"onnxspec_{name}", None)
    if option:
        return option
    value = config.getini(f"onnxspec_{name}")
    return [str(v) for v in value or ()] if repeatable else value


def _base(config: pytest.Config, name: str) -> Path:
    """Return the folder to which a path is relative: the current one for the command line, that of the ini-file
    otherwise."""
    if config.getoption(f"onnxspec_{name}", None):
        return config.invocation_params.dir
    return config.inipath.parent if config.inipath is not None else config.rootpath


def _targets_file(config: pytest.Config) -> Path | None:
    folders = (config.invocation_params.dir, config.rootpath)
    return next((f / "targets.toml" for f in folders if (f / "targets.toml").is_file()), None)


def _pythonpath(config: pytest.Config) -> tuple[str, ...]:
    """pytest's own ini value ``pythonpath`` changes sys.path of its process alone; a worker needs it too."""
    try:
        folders = config.getini("pythonpath")
    except (KeyError, ValueError):  # the plugin that declares it is switched off
        return ()
    return tuple(os.fspath(folder) for folder in folders)
