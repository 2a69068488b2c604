"""A worker on another machine, over real ssh: our own server on the loopback interface.

What the worker needs comes over the protocol; test_worker.py has the same without ssh.
"""

from __future__ import annotations

import json
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.process import TargetProcess

from ..miniatures import Finished, naming, pick, read_results
from ..misbehaving import X, adapter, failure_to_start, job, outcomes

Inside = Callable[..., Finished]

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/sbin:/sbin:/usr/local/sbin")
SSH, KEYGEN = (shutil.which(name) for name in ("ssh", "ssh-keygen"))

pytestmark = [
    pytest.mark.skipif(SSHD is None, reason="there is no sshd (Debian: apt-get install openssh-server)"),
    pytest.mark.skipif(SSH is None or KEYGEN is None, reason="there is no ssh client (Debian: openssh-client)"),
]

SPY = '''
with open(os.path.expanduser("~/workers"), "a") as file:
    file.write(str(os.getpid()) + "\\n")

DESCRIPTION.update(home=os.environ["HOME"], variable=os.environ.get("VARIABLE"), path=sys.path[0])

def server():
    """Id of the process that holds the connection: the nearest one above that is an sshd."""
    pid = os.getpid()
    while True:
        with open("/proc/{}/stat".format(pid)) as file:
            name, fields = file.read().rpartition(")")[::2]
        if name.split("(")[1].startswith("sshd"):
            return pid
        pid = int(fields.split()[1])

def drop():
    os.kill(server(), signal.SIGKILL)
    time.sleep(1000)

def drop_once():
    done = os.path.expanduser("~/dropped")
    if not os.path.exists(done):
        open(done, "w").close()
        drop()
'''


@dataclass(frozen=True)
class Box:
    """Machine that ssh connects to.

    command
        Starts the interpreter there; contains the placeholder ``{stdin}``.
    home
        The folder of the user there.
    """

    command: tuple[str, ...]
    home: Path

    def workers(self) -> list[int]:
        """Return the ids of the workers in which the spy was started."""
        return [int(line) for line in (self.home / "workers").read_text().split()]


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    assert SSHD is not None
    assert SSH is not None
    folder = Path(tempfile.mkdtemp(prefix="onnxspec-ssh-"))  # the server does not trust keys in pytest's own folders
    server = None
    privileges = Path("/run/sshd")  # a server of root drops its privileges there; the system's boot creates the folder
    made = os.geteuid() == 0 and not privileges.exists()
    try:
        if made:
            privileges.mkdir(mode=0o755)
        home = folder / "home"
        home.mkdir()
        _keys(folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        _configure(folder, port, pwd.getpwuid(os.getuid()).pw_name)
        with (folder / "log").open("wb") as log:
            start = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
            server = subprocess.Popen(start, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ssh = [SSH, "-F", str(folder / "ssh_config"), "box"]
        deadline = time.monotonic() + 590
        while subprocess.run([*ssh, "true"], capture_output=True, timeout=590).returncode:
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield Box((*ssh, f"HOME={home} {shlex.quote(sys.executable)} {{stdin}}"), home)
    finally:
        if server is not None:
            server.terminate()
            server.wait(10)
        shutil.rmtree(folder)
        if made:
            privileges.rmdir()


def _keys(folder: Path) -> None:
    for name in ("host", "user"):
        command = [str(KEYGEN), "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(command, check=True, capture_output=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    (folder / "authorized").chmod(0o644)


def _configure(folder: Path, port: int, name: str) -> None:
    (folder / "sshd_config").write_text(f"""\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
AuthenticationMethods publickey
StrictModes no
UsePAM no
PrintMotd no
""")
    (folder / "ssh_config").write_text(f"""\
Host box
HostName 127.0.0.1
Port {port}
User {name}
IdentityFile {folder}/user
IdentitiesOnly yes
UserKnownHostsFile {folder}/known
StrictHostKeyChecking yes
BatchMode yes
LogLevel ERROR
""")
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")


@pytest.fixture
def spy(box: Box, tmp_path: Path) -> Target:
    for name in ("dropped", "workers"):
        (box.home / name).unlink(missing_ok=True)
    return adapter(tmp_path, SPY, {"VARIABLE": 'it\'s a "test" $HOME'}, command=box.command, time_limit=3.0)


def test_a_remote_worker_has_only_files_of_the_protocol(box: Box, spy: Target) -> None:
    with TargetProcess(spy) as process:
        description = process.start()
        (outcome,) = process.run([job("print('doing this')")])
    assert description["home"] == str(box.home)
    assert description["variable"] == 'it\'s a "test" $HOME'
    assert description["path"] not in ("", str(Path.home()))
    assert outcome.status == "ran"
    assert np.array_equal(np.asarray(outcome.outputs[0][0][0]), X)
    assert "doing this" in outcome.captured


def wait_until_gone(box: Box) -> None:
    deadline = time.monotonic() + 590
    while any(Path(f"/proc/{pid}/exe").exists() for pid in box.workers()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_connection_that_is_lost_once_costs_nothing(box: Box, spy: Target) -> None:
    codes = [*[""] * 5, "drop_once()", *[""] * 5]
    returned = outcomes(spy, *codes)
    assert [outcome.key for outcome in returned] == [code or "good" for code in codes]
    assert {outcome.status for outcome in returned} == {"ran"}
    assert len(box.workers()) >= 2
    wait_until_gone(box)


def test_a_case_that_loses_the_connection_every_time_is_the_only_one_blamed(spy: Target) -> None:
    returned = outcomes(spy, "", "drop()", "", "os.abort()", "")
    assert [outcome.status for outcome in returned] == ["ran", "crashed", "ran", "crashed", "ran"]
    assert "exit code 255" in returned[1].message
    assert returned[3].signal == "SIGABRT"


def test_a_machine_that_cannot_be_reached_is_unavailable_and_says_why(box: Box, spy: Target) -> None:
    nowhere = tuple("no-such-user@box" if word == "box" else word for word in box.command)
    assert "Permission denied" in str(failure_to_start(replace(spy, command=nowhere)))
    missing = (*box.command[:-1], "no-such-python {stdin}")
    assert "no-such-python" in str(failure_to_start(replace(spy, command=missing)))


def test_a_real_runtime_there_gets_the_verdicts_that_it_gets_here(inside: Inside, box: Box, tmp_path: Path) -> None:
    file = tmp_path / "far.toml"
    file.write_text(f'[box]\nadapter = "onnxruntime"\ncommand = {json.dumps(box.command)}\n')
    cases = naming([*pick(3), *pick(2, types=("float16",)), *pick(1, lambda s: s.N == 0)])
    plain = ("--expected", "none", "--no-extra")
    verdicts = []
    for name in ("box", "onnxruntime"):
        assert inside("run", "--targets-file", file, "--target", name, *cases, "--out", name, *plain).code == 1
        verdicts.append([(r["case"], r["verdict"], r["worst"]) for r in read_results(tmp_path / name)])
    far, near = verdicts
    assert far == near
    assert "crashed" in {verdict for _, verdict, _ in far}
