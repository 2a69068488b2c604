"""Cluster that uses TLS, with certificates of an authority made for the test."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import dask
import distributed
import pytest

from onnxspec.conformance.cluster.connection import ClusterError, cluster_at
from onnxspec.conformance.cluster.shards import run_shards
from onnxspec.conformance.probes.selection import Selection
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.planning import planned
from onnxspec.conformance.targets.target import parse_target

from ..conformance.miniatures import pick

pytestmark = pytest.mark.skipif(which("openssl") is None, reason="certificates are made by openssl")

Files = dict[str, str]


def certificates(folder: Path, name: str) -> Files:
    """Make an authority and a certificate that it has signed; return their paths by Dask's configuration keys."""
    folder.mkdir()
    key, ca_key = folder / "key.pem", folder / "ca-key.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    _openssl("req", "-x509", *curve, "-keyout", ca_key, "-out", folder / "ca.pem", "-subj", f"/CN={name}", "-days", "2")
    _openssl("req", *curve, "-keyout", key, "-out", folder / "request.pem", "-subj", f"/CN={name} member")
    signed = ["-CA", folder / "ca.pem", "-CAkey", ca_key, "-CAcreateserial", "-days", "2"]
    _openssl("x509", "-req", "-in", folder / "request.pem", *signed, "-out", folder / "cert.pem")
    members = {
        f"distributed.comm.tls.{role}.{part}": str(folder / f"{part}.pem")
        for role in ("client", "scheduler", "worker")
        for part in ("cert", "key")
    }
    return {"distributed.comm.tls.ca-file": str(folder / "ca.pem"), **members}


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Files]]:
    """Yield the address of a scheduler with two workers, and the certificates that they accept."""
    files = certificates(tmp_path_factory.mktemp("farm") / "tls", "farm")
    with (
        dask.config.set(files),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            protocol="tls://",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            security=distributed.Security(require_encryption=True),
            memory_limit=0,
        ) as cluster,
    ):
        assert cluster.scheduler_address.startswith("tls://")
        yield cluster.scheduler_address, files


def test_a_run_over_tls_is_the_run_here(farm: tuple[str, Files], tmp_path: Path) -> None:
    address, files = farm
    plan = planned(Selection(cases=tuple(pick(6))), [parse_target("onnx-reference")])
    with RunWriter(tmp_path / "here") as writer:
        (local,) = execute(plan, writer).targets
    with dask.config.set(files), cluster_at(address) as cluster:
        (remote,) = run_shards(plan, tmp_path / "there", cluster).targets
    results = [{(r.case, r.verdict, r.worst) for r in done.results} for done in (remote, local)]
    assert results[0] == results[1]


@pytest.mark.parametrize("whose", ["nobody", "somebody else"])
def test_without_the_farm_s_certificates_nobody_gets_in(farm: tuple[str, Files], tmp_path: Path, whose: str) -> None:
    address, files = farm
    others = dict.fromkeys(files, None) if whose == "nobody" else certificates(tmp_path / "tls", whose)
    with (
        dask.config.set(others),
        pytest.raises(ClusterError, match="no scheduler answers") as caught,
        cluster_at(address),
    ):
        pass
    assert "\n" not in str(caught.value)
    # A client that is still open when it is collected can prevent the next one from starting.
    clients = [item for item in gc.get_objects() if type(item) is distributed.Client]
    assert {client.status for client in clients} <= {"closed"}
