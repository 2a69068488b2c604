"""``onnxspec list`` lists cases; ``onnxspec generate`` writes them as ONNX test-case directories."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import click

from ...cases import Spec, digests_for, operator_versions
from ...cases.directories.manifest import MANIFEST, NOT_BUILT, generate
from ...cases.profiles import written_cases
from ...reference import operator_names
from ..probes.probe import Probe, SpecProbe
from ..probes.selection import Selection, select_probes, selection_of
from ..results.environment import version_of
from ..text import plural
from .command import PATH, case_option, op_option, profile_option, type_option
from .terminal import fail, put, say, warn, why

_REASONS = 6
"""Reasons for leaving cases out that are printed, the most frequent first."""

_FLOAT = ("core", "full")
"""Profiles to which dense cases are added that a runner with one tolerance may judge: all of them are float nodes."""


@click.command()
@click.option("--out", "-o", metavar="DIR", type=PATH, required=True, help="New or empty folder.")
@profile_option
@op_option
@type_option
@case_option
@click.option("--all", "everything", is_flag=True, help="Also write cases that a fixed tolerance cannot judge fairly.")
def generate_cases(
    out: Path, profile: str, op: Sequence[str], type: Sequence[str], case: Sequence[str], everything: bool
) -> None:
    """Write cases as ONNX test-case directories, with a manifest.

    Every runner in the form of onnx.backend.test can run them. Without --all, only cases are written that a fixed
    tolerance judges fairly and on which the specification leaves nothing open; the manifest has the reasons.
    """
    try:
        chosen = selection_of(profile, op, type, case)
        specs = _specs_of(select_probes(chosen, operator_names("")))
        if profile in _FLOAT and not chosen.cases and not chosen.directories:
            specs += _fair(chosen, {spec.digest for spec in specs})
        versions = sorted({(spec.op, spec.version) for spec in specs})
        command = ["onnxspec", "generate", "--out", "DIR"]
        made = {
            "command": shlex.join([*command, *options_of(chosen), *(["--all"] if everything else [])]),
            "onnxspec": version_of("onnxspec") or "",
            "profile": chosen.profile,
            "digests": digests_for(chosen.profile, versions),
        }
        manifest = generate(out, specs, made, everything=everything)
    except OSError as error:
        fail(why(error))
    written, left_out = len(manifest["cases"]), len(manifest["left_out"])
    say(f"{plural(written)} in {out}")
    if left_out:
        # Cases that --all leaves out as well have no right outputs that could be written.
        more = "" if everything else "; --all also writes those that have outputs to expect"
        say(f"{plural(left_out)} left out, for the reasons in {out / MANIFEST}{more}")
        reasons = Counter(entry["reason"] for entry in manifest["left_out"])
        for reason, count in reasons.most_common(_REASONS):
            say(f"{count:>6}  {reason}")
    broken = [entry for entry in manifest["left_out"] if entry["reason"].startswith(NOT_BUILT)]
    for entry in broken:
        warn(f"{entry['case']}: {entry['reason']}", "red")
    raise click.exceptions.Exit(1 if broken or not written else 0)


def _fair(chosen: Selection, known: Collection[str]) -> list[Spec]:
    """Return dense cases for runners with one tolerance, of the chosen operators, versions and types."""
    return [
        spec
        for op, version in operator_versions()
        if (not chosen.ops or op in chosen.ops) and (not chosen.versions or version in chosen.versions)
        for spec in written_cases("fair", op, version)
        if (not chosen.types or spec.type in chosen.types) and spec.digest not in known
    ]


def _specs_of(probes: Iterable[Probe]) -> list[Spec]:
    """Return the specs of cases that can be written as directories."""
    specs = []
    for probe in probes:
        if not isinstance(probe, SpecProbe):
            fail(f"{probe.id} is a directory already")
        specs.append(probe.spec)
    return specs


def options_of(chosen: Selection) -> list[str]:
    """Return the options that choose the same cases."""
    options = [
        *([("--case", chosen.directories)] if chosen.directories else [("--profile", (chosen.profile,))]),
        ("--op", _operators(chosen)),
        ("--type", chosen.types),
        ("--case", chosen.cases),
    ]
    return [word for option, values in options for value in values for word in (option, value)]


def _operators(chosen: Selection) -> list[str]:
    """Return the chosen operators, with versions if only some are chosen."""
    if not chosen.versions:
        return list(chosen.ops)
    known = operator_versions(None)
    return [f"{op}-{v}" for op, v in known if op in (chosen.ops or operator_names("")) and v in chosen.versions]


@click.command()
@profile_option
@op_option
@type_option
@case_option
@click.option("--features", is_flag=True, help="Print the features of each case.")
@click.option("--json", "as_json", is_flag=True, help="Print each case as JSON, for --case.")
def list_cases(
    profile: str, op: Sequence[str], type: Sequence[str], case: Sequence[str], features: bool, as_json: bool
) -> None:
    """List the cases of a profile, one a line."""
    if features and as_json:
        fail("--features and --json cannot be combined")
    selection = selection_of(profile, op, type, case)
    probes = select_probes(selection, operator_names(""))
    if as_json:
        put("".join(f"{p.text}\n" for p in probes))
    else:
        put("".join(f"{p.id}  {' '.join(sorted(p.features))}\n" if features else f"{p.id}\n" for p in probes))
    warn(plural(len(probes)), "dim")
