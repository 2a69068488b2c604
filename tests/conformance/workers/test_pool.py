"""Work shared by processes: the same results in the same order, even if processes fail."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from onnxspec.conformance.workers.pool import Pool

from ..miniatures import descendants
from ..misbehaving import running


def doubled_elsewhere(here: int, number: int) -> tuple[int, bool]:
    """Return twice a number, and whether another process computed it; for some numbers that process raises or exits."""
    if os.getpid() != here and number == 13:
        raise LookupError("not known there")
    if os.getpid() != here and number == 27:
        os._exit(3)
    return 2 * number, os.getpid() != here


def test_results_are_complete_if_processes_fail_and_no_process_is_left_behind() -> None:
    read: list[int] = []

    def pieces() -> Iterator[int]:
        for number in range(60):
            read.append(number)
            yield number

    before = descendants(os.getpid())
    results = []
    with Pool(2, alone=3, together=2) as pool:
        for result in pool.map(partial(doubled_elsewhere, os.getpid()), pieces(), weigh=lambda number: number % 5):
            results.append(result)
            assert len(read) <= len(results) + 2 * 4 * 2 + 2  # read ahead for two processes, and no further
    assert [number for number, _ in results] == [2 * number for number in range(60)]
    elsewhere = {number // 2 for number, remote in results if remote}
    assert elsewhere
    assert not elsewhere & {0, 1, 2, 3, 13, 27}  # the first ones, and the failed ones
    assert len(descendants(os.getpid())) <= len(before) + 2  # the fork server and the resource tracker


def test_an_error_that_is_the_works_own_is_raised_where_the_work_was_given() -> None:
    def unsendable(number: int) -> float:
        return 1 / (number - 2)

    with Pool(2, alone=0) as pool:
        results = pool.map(unsendable, range(4))
        assert [next(results), next(results)] == [-0.5, -1.0]
        with pytest.raises(ZeroDivisionError) as error:
            next(results)
    assert any(entry.name == "unsendable" for entry in error.traceback)


ASLEEP = """
import time
from onnxspec.conformance.workers.pool import spread
list(spread(time.sleep, [600, 600], 2))
"""


@pytest.mark.skipif(not descendants(os.getppid()), reason="needs Linux")
def test_processes_of_a_parent_that_is_killed_end_with_it(kin: dict[str, str], tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ASLEEP], env=kin, cwd=tmp_path)
    children: list[int] = []
    deadline = time.monotonic() + 120
    while len(children) < 4 and time.monotonic() < deadline:  # two workers, and the helpers of multiprocessing
        time.sleep(0.1)
        children = descendants(process.pid)
    time.sleep(2)  # until they work
    process.kill()
    process.wait()
    while any(map(running, children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(running, children))


EXPECTING = """
import os
from onnxspec.conformance.workers.pool import Pool

with Pool(2, alone=3) as pool:
    for pieces in (3, 4):
        pool.expect(pieces)
        print(len(open(f"/proc/self/task/{os.getpid()}/children").read().split()))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not say which processes one has")
def test_the_fork_server_is_loaded_ahead_only_if_enough_pieces_are_expected() -> None:
    few, enough = subprocess.check_output([sys.executable, "-c", EXPECTING], text=True, timeout=60).split()
    assert few == "0"
    assert int(enough) > 0
