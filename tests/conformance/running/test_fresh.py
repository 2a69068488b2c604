"""A sample of cases in a fresh process, for targets that keep state between cases or return unwritten memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.running.fresh import SAMPLE, sample_of

from ..miniatures import Command, complaints, naming, pick, read_results

REMEMBERING = '''
"""Right, but every result after the fifth model of a process is one $STEP larger."""

import os
import numpy as np
import zoo

SEEN = []

class Backend(zoo.Conforming):
    @classmethod
    def prepare(cls, model, device="CPU", **options):
        SEEN.append(model)
        return super().prepare(model)

    @staticmethod
    def compute(prepared, inputs):
        outputs = zoo.Conforming.compute(prepared, inputs)
        if len(SEEN) <= 5:
            return outputs
        if os.environ["STEP"] == "bit":
            return {n: np.nextafter(a, np.inf) for n, a in outputs.items()}
        return {n: a + a.dtype.type(0.5) for n, a in outputs.items()}
'''

UNWRITTEN = '''
"""Right, but in the padding of short rows, where it returns what the memory held before."""

import ctypes
import numpy as np
import zoo

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p

def spoil(prepared, inputs, outputs):
    if "Y" in outputs and "sequence_lens" in inputs:
        held = libc.malloc(4096)
        byte = ctypes.string_at(held + 2000, 1)[0]
        for row, length in enumerate(inputs["sequence_lens"]):
            outputs["Y"][length:, :, row] = byte
    return outputs

Backend = zoo.spoiling(spoil)
'''


def plain(spec: CaseSpec) -> bool:
    # With sigmoid and tanh no number has a bound of zero, so that a change of one bit is still right.
    usual = spec.activations is None and spec.data == "dense" and spec.outputs == ("Y", "Y_h", "Y_c")
    # A single model of each case is prepared, once: a second session would count as another.
    alone = spec.reruns == "none" and not (
        spec.beside or spec.after_refusal or spec.many or spec.kept or spec.reweighed
    )
    return usual and alone and bool(spec.T * spec.N) and not spec.illegal


@pytest.fixture
def command(onnxspec: Command, tmp_path: Path) -> Command:
    for name, text in (("remembering", REMEMBERING), ("unwritten", UNWRITTEN)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), onnxspec.environment["PYTHONPATH"]])
    return Command({**onnxspec.environment, "PYTHONPATH": path}, tmp_path)


@pytest.mark.parametrize(("step", "late"), [("bit", "pass"), ("half", "unstable")])
def test_what_depends_on_earlier_cases_shows_in_a_fresh_process(
    command: Command, tmp_path: Path, step: str, late: str
) -> None:
    cases = pick(12, lambda s: plain(s) and s.lengths != "empty")  # a row of length 0 returns its state unchanged
    environment = {"STEP": step}
    arguments = ("run", "--target", "backend:remembering", *naming(cases), "--no-extra", "--out", "o")
    done = command(*arguments, environment=environment)
    assert complaints(done.err) == []
    results = read_results(tmp_path / "o")
    assert [result["case"] for result in results] == cases
    # In the fresh process the last cases come first, and five of them are right there; then the first ones are not.
    open_questions = [result for result in results if "nondeterministic" in result["flags"]]
    assert {result["case"] for result in open_questions} == {*cases[:5], *cases[-5:]}
    assert {result["verdict"] for result in open_questions} == {late}
    if late == "unstable":
        assert done.code == 1
        assert all(r["message"].startswith("another result in a fresh process") for r in open_questions)
        assert {result["verdict"] for result in results[5:7]} == {"wrong"}


def test_memory_that_nobody_has_written_shows(command: Command, tmp_path: Path) -> None:
    """In padding any value passes; filling memory with another byte shows that the value is unwritten memory."""
    cases = pick(
        10,
        lambda s: plain(s) and s.lengths == "ragged" and s.data == "dense" and not s.layout and s.N > 1,
        versions=(7, 14),
    )
    if not hasattr(os, "confstr") or "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""):
        pytest.skip("needs the GNU C library")
    done = command("run", "--target", "backend:unwritten", *naming(cases), "--no-extra", "--out", "o")
    assert complaints(done.err) == []
    flagged = {r["case"] for r in read_results(tmp_path / "o") if "nondeterministic" in r["flags"]}
    assert flagged == set(cases)


def test_the_sample_is_of_what_a_target_answers_and_within_those_of_parts() -> None:
    """So no profile, nonce or missing feature leaves the sample empty, and shards together run all its cases."""
    cases = [f"case-{number}" for number in range(100)]
    for nonce in ("4711", "4715"):
        chosen = sample_of(f"core-nonce-{nonce}", cases)
        assert len(chosen) == SAMPLE
        parts = [sample_of(f"core-nonce-{nonce}", cases[k::3]) for k in range(3)]
        assert chosen <= frozenset().union(*parts)
    assert sample_of("core-nonce-4711", cases) != sample_of("core-nonce-4715", cases)
    assert sample_of("core-nonce-4711", cases[:3]) == frozenset(cases[:3])
