"""Comparison of two packages of a product."""

from __future__ import annotations

from collections.abc import Iterator

from ..judging.vocabulary import STATES, UNKNOWN
from .package import Package, attestation_of, record_in
from .packing import ENVIRONMENT, SUITE
from .records import MeasuredRecord, RowRecord, SuiteRecord
from .verifying import differences

_NOT_TRIED = STATES[UNKNOWN]


def changes_since(old: Package, new: Package) -> Iterator[str]:
    """Yield the statements of a package that differ from an earlier one's, a line each. Raise UserError."""
    before, now = (attestation_of(package).predicate for package in (old, new))
    yield f"since {before.date} ({before.product}, SHA-256 {old.sha256[:16]}):"
    for key in (
        "product",
        "vendor",
        "kind",
        "target",
        "runtime",
        "runtime_version",
        "provider",
        "accuracy",
        "profile",
        "signer",
    ):
        if getattr(before, key) != getattr(now, key):
            yield f"  {key.replace('_', ' ')}: {getattr(before, key)!r}, then {getattr(now, key)!r}"
    earlier, later = (_levels(statement.rows) for statement in (before, now))
    for name in sorted(earlier.keys() | later.keys()):
        if earlier.get(name) != later.get(name):
            yield f"  {name}: {earlier.get(name, _NOT_TRIED)}, then {later.get(name, _NOT_TRIED)}"
    suites = [record_in(package, SUITE, SuiteRecord) for package in (old, new)]
    if suites[0].sources != suites[1].sources:
        yield f"  suite: onnxspec {suites[0].onnxspec}, then {suites[1].onnxspec}, with other sources"
    if before.challenge.nonce == now.challenge.nonce:
        yield f"  the same nonce, {now.challenge.nonce or 'none'}: the fresh cases were known before"
    if before.waivers != now.waivers:
        yield f"  waivers: {len(before.waivers)}, then {len(now.waivers)}"
    environments = [record_in(package, ENVIRONMENT, MeasuredRecord) for package in (old, new)]
    packages = [{p.name: f"{p.version} {p.sha256[:16]}" for p in environment.packages} for environment in environments]
    for path, earlier_value, later_value in differences(packages[0], packages[1]):
        yield f"  package {path}: {earlier_value}, then {later_value}"
    for path, earlier_value, later_value in differences(environments[0].devices, environments[1].devices):
        yield f"  device{path}: {earlier_value}, then {later_value}"


def _levels(rows: tuple[RowRecord, ...]) -> dict[str, str]:
    forms = {"certified": "{}", "exceptions": "{} with exceptions", "none": "no level"}
    return {
        f"{row.op}-{row.version} {row.type} {row.accuracy}": forms.get(row.status, "{}").format(row.level)
        for row in rows
    }
