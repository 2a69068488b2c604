"""``onnxspec targets``: the targets at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from ..targets.adapters import EXTERNAL
from ..workers.survey import Surveyed, survey_targets, way_to_install
from .command import targets_file_option
from .terminal import say

_HEADINGS = {
    "adapter": "shipped",
    "package": "from other packages",
    "table": "tables of {file}",
}
_FORMS = (
    ("onnxruntime:NAMEExecutionProvider", "onnxruntime with one of its providers, and proof that nodes ran there"),
    ("backend:package.module", "any module that implements onnx.backend.base.Backend"),
)


@click.command()
@targets_file_option
def list_targets(targets_file: Path | None) -> None:
    """List the targets, and how to install missing ones.

    Every runtime is started once, in its own process, but for those on other machines and in containers.
    """
    if targets_file is None and Path("targets.toml").is_file():
        targets_file = Path("targets.toml")
    findings = survey_targets(targets_file)
    for kind, heading in _HEADINGS.items():
        of_kind = [finding for finding in findings if finding.kind == kind]
        if of_kind:
            say(heading.format(file=targets_file))
            for finding in of_kind:
                say(*_lines(finding))
            say("")
    say("in other forms")
    for form, meaning in _FORMS:
        say(f"  {form}", f"    {meaning}")
    say(f'  adapter = "{EXTERNAL}" in targets.toml', "    any program that speaks docs/worker-protocol.md")


def _lines(finding: Surveyed) -> Iterator[str]:
    target, described = finding.target, finding.described
    yield f"  {finding.name}"
    if finding.kind == "table" and target is not None:
        by = f", {' '.join(word for word in target.command if word != '{worker}')}" if target.command else ""
        yield f"    adapter {target.adapter}{by}"
    if described:
        text = f"    {described.get('runtime')} {described.get('version')}"
        yield text + (f", {described['device']}" if described.get("device") else "")
        providers = described.get("available_providers")
        if isinstance(providers, list):
            yield f"    providers: {', '.join(map(str, providers))}"
    elif finding.trouble:
        yield f"    not here: {finding.trouble}"
        if target is not None and (command := way_to_install(target, finding.trouble)):
            yield f"    to install: {command}"
    elif target is not None and target.is_command:
        yield "    not started: 'onnxspec run --target' does"
    if finding.tested and finding.kind != "table":
        yield f"    tested: {finding.tested}"
