"""Test-case directories as probes: ours, those of ONNX, a vendor's own.

Where the model is one recurrent node that its document allows, it is judged by the reference's radii, like a case of a
profile; elsewhere by the outputs that the directory gives and the tolerance that it is meant for.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from ..cases.directory import CaseDirectory, DirectoryError, find_directories, read_directory
from ..cases.features import groups_with, model_features, node_features
from ..cases.foreign import trials_of
from ..cases.reading import NotOneNode, OneNode, read_model
from ..reference import IllegalNode, clauses_of, configure
from .given import judge_given
from .judgement import FAILING, Judgement, Verdict
from .probe import Prepared, job_of, traits_of
from .process import Job, Outcome
from .verdict import judge
from .worker import one_line

__all__ = ["DirectoryProbe", "digest_of_directories", "probe_directories"]


@dataclass(frozen=True)
class DirectoryProbe:
    """A test-case directory; the fields are those of a probe.

    root
        The folder that was asked for, in which this one was found.
    digest
        SHA-256 of its model and its tensors.
    documented
        Whether the model is one recurrent node that its document allows.
    """

    folder: Path
    root: Path
    digest: str
    documented: bool
    id: str
    op: str
    version: int
    type: str
    domain: str = ""
    clauses: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()
    traits: frozenset[str] = frozenset()
    size: tuple[float, int] = (0.0, 0)
    graded: bool = False

    def prepare(self) -> Prepared:
        """Read the directory again: a tree of them may be larger than the memory.

        Raises DirectoryError where it cannot be read any more, or is not what it was.
        """
        read = read_directory(self.folder)
        if _digest(read) != self.digest:
            raise DirectoryError(f"{self.id}: was changed since the run began")
        return _by_document(self.id, read) if self.documented else _by_given(self.id, read)

    def repeat(self, target: str) -> list[str]:
        """``onnxspec run`` with this directory alone."""
        return ["onnxspec", "run", "--cases", str(self.root), "--case", self.id, "--target", target]


def _by_given(key: str, read: CaseDirectory) -> Prepared:
    job = Job(key, read.model, tuple(data.inputs for data in read.data_sets))
    given = [data.outputs for data in read.data_sets]

    def judgement(outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
        return judge_given(outcomes[0], given, read.shown, read.rtol, read.atol)

    return Prepared((job,), judgement)


def _by_document(key: str, read: CaseDirectory) -> Prepared:
    trials = trials_of(key, read.model, read_model(read.model), [data.inputs for data in read.data_sets])
    given = [data.outputs for data in read.data_sets]

    def judgement(outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
        found = judge(trials, outcomes, accuracy)
        # The given outputs decide nothing here, but whoever has them wants to know where they say otherwise.
        by_given = judge_given(outcomes[0], given, read.shown, read.rtol, read.atol)
        if by_given.verdict in FAILING and found.verdict in (Verdict.PASS, Verdict.UNJUDGED):
            found = replace(found, flags=(*found.flags, "differs-from-given"))
        return found

    return Prepared(tuple(map(job_of, trials)), judgement, trials)


def probe_directories(
    roots: Iterable[Path], complain: Callable[[str], None] = lambda line: None
) -> list[DirectoryProbe]:
    """The test cases at or below folders, in a fixed order.

    complain
        Told of every directory that cannot be used, in one line each; the rest goes on.

    Raises NoTestCase where a root is no folder.
    """
    found: list[DirectoryProbe] = []
    taken: set[str] = set()
    for root in roots:
        for folder in find_directories(root):
            try:
                probe = _probe(root, folder, read_directory(folder))
            except DirectoryError as error:
                complain(str(error))
                continue
            if probe.id in taken:
                number = next(k for k in range(2, len(taken) + 3) if f"{probe.id}-{k}" not in taken)
                probe = replace(probe, id=f"{probe.id}-{number}")
            taken.add(probe.id)
            found.append(probe)
    return found


def digest_of_directories(probes: Iterable[DirectoryProbe]) -> str:
    """SHA-256 over all that is run: what "the same directories" means."""
    lines = sorted(f"{probe.id} {probe.digest}\n" for probe in probes)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _probe(root: Path, folder: Path, read: CaseDirectory) -> DirectoryProbe:
    parts = folder.relative_to(root).parts or (folder.resolve().name,)
    id = re.sub(r"[^\w.+=@~-]", "_", ".".join(parts), flags=re.ASCII)[:200]
    fed = [array for data in read.data_sets for array in data.inputs.values()]
    kind = next((a.dtype.name for data in read.data_sets for a in (*data.inputs.values(), *data.outputs.values())), "")
    graph = one_line(read.graph, 100) or id
    elements = float(sum(array.size for array in fed))
    words = frozenset({kind, graph})
    plain = DirectoryProbe(
        folder, root, _digest(read), False, id, graph, read.opset, kind, traits=words, size=(elements, 0)
    )
    try:
        one = read_model(read.model)
        return _documented(plain, one, read)
    except (NotOneNode, IllegalNode, KeyError):
        return plain


def _documented(plain: DirectoryProbe, one: OneNode, read: CaseDirectory) -> DirectoryProbe:
    """The probe of a model of one recurrent node. Raises IllegalNode or KeyError where no document speaks of it."""
    inputs = [one.bind(data.inputs) for data in read.data_sets]
    symbolic = any(
        not d.HasField("dim_value")
        for value in onnx.load_model_from_string(read.model).graph.input
        for d in value.type.tensor_type.shape.dim
    )
    features = model_features("W" in one.constants, symbolic, len(inputs) > 1)
    for arrays in inputs:
        features |= node_features(one.node, arrays)
    c = configure(one.node, inputs[-1])
    operator = one.node.operator
    clauses = clauses_of(operator.op_type, operator.since_version, features)
    return replace(
        plain,
        documented=True,
        op=operator.op_type,
        domain=operator.domain,
        version=operator.since_version,
        type=c.format.name,
        clauses=tuple(clause.id for clause in clauses),
        features=features,
        groups=tuple(groups_with(features)),
        traits=traits_of(one.node, features, c.format.name),
        size=(float(math.prod(max(n, 1) for n in (c.T, c.N, c.I, c.H)) * len(c.directions)), len(features)),
    )


def _digest(read: CaseDirectory) -> str:
    total = hashlib.sha256(read.model)
    for data in read.data_sets:
        for arrays in (data.inputs, data.outputs):
            for name, array in arrays.items():
                total.update(f"\0{name}\0{array.dtype.name}{array.shape}\0".encode("utf-8", "surrogatepass"))
                total.update(array.tobytes())
    total.update(f"{read.rtol!r} {read.atol!r}".encode())
    return total.hexdigest()
