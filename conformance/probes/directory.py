"""Test-case directories as probes: those of this suite, of ONNX, or of a vendor.

If the model consists of one or several recurrent nodes that their documents allow, it is judged by the reference's
radii, like a case of a profile. Otherwise it is judged by the outputs and the tolerance of the directory.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from ...cases import family_of
from ...cases.axes.quantized import features_of_levels
from ...cases.directories.directory import CaseDirectory, find_directories, read_directory
from ...cases.directories.external_data import DEPTH, MOST_MULTIPLY_ADDS, MOST_STEPS
from ...cases.directories.graph_reading import NodeGraph, alone, read_node_graph, trials_of
from ...cases.directories.reading import NotOneNode
from ...cases.specs.features import groups_with, model_features
from ...reference import IllegalNode, clauses_of, resolve
from ...reference.errors import DirectoryError
from ...reference.operators.operator import Resolved
from ...reference.operators.quantized import as_numbers
from ..judging.given import judge_given
from ..judging.judgement import FAILING, RANDOM_WEIGHTS, Judgement, Verdict
from ..judging.verdict import judge
from ..workers.process import Job, Outcome
from ..workers.worker import one_line
from .probe import Prepared, Probe, job_of, traits_of

_MOST_GATES = 4  # of a cell


@dataclass(frozen=True)
class DirectoryProbe:
    """A test-case directory; the fields are those of a probe.

    digest
        SHA-256 of its model and its tensors.
    documented
        Whether the model consists of one or several recurrent nodes that their documents allow.
    """

    folder: Path
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

    @property
    def text(self) -> str:
        """The path of the directory."""
        path = str(self.folder)
        return path if self.folder.is_absolute() else os.path.join(os.curdir, path)

    def prepare(self) -> Prepared:
        """Read the directory again, because a tree of directories may be larger than the memory.

        Raise DirectoryError where it can no longer be read, or has changed.
        """
        read = read_directory(self.folder)
        if _digest(read) != self.digest:
            raise DirectoryError(f"{self.id}: was changed since the run began")
        given = [data.outputs for data in read.data_sets]

        def by_given(outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
            return judge_given(outcomes[0], given, read.shown, read.rtol, read.atol)

        inputs = [data.inputs for data in read.data_sets]
        if not self.documented:
            return Prepared((Job(self.id, read.model, tuple(inputs)),), by_given)
        trials = trials_of(self.id, read.model, read_node_graph(read.model), inputs)
        properties = onnx.load_model_from_string(read.model).metadata_props
        random_weights = any(prop.key == RANDOM_WEIGHTS for prop in properties)

        def by_document(outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
            judged = judge(trials, outcomes, accuracy)
            flags = [RANDOM_WEIGHTS] if random_weights else []
            # The given outputs do not decide the verdict, but a difference is worth a flag.
            if judged.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE):
                flags += ["differs-from-given"] if by_given(outcomes, accuracy).verdict in FAILING else []
            return replace(judged, flags=(*judged.flags, *flags))

        return Prepared(tuple(map(job_of, trials)), by_document, trials)

    def repeat(self, target: str) -> list[str]:
        """Return the arguments of ``onnxspec run`` for this directory only."""
        return ["onnxspec", "run", "--case", self.text, "--target", target]


def probe_directories(
    roots: Iterable[Path], complain: Callable[[str], None] = lambda line: None
) -> list[DirectoryProbe]:
    """Return the test cases at or below folders, in a fixed order.

    complain
        Called with one line for every directory that cannot be used; the others are still returned.

    Raise DirectoryError where a root is not a folder.
    """
    probes: list[DirectoryProbe] = []
    taken: set[str] = set()
    for root in roots:
        for folder in find_directories(root):
            name = one_line(folder.name or str(folder), 200)
            if len(folder.relative_to(root).parts) >= DEPTH:
                complain(f"{name}: lies {DEPTH} folders deep, and nothing is looked for below")
                continue
            try:
                probe = _probe(root, folder, read_directory(folder))
            except DirectoryError as error:
                complain(str(error))
                continue
            except MemoryError:
                complain(f"{name}: takes more memory than there is")
                continue
            if probe.id in taken:
                number = next(k for k in range(2, len(taken) + 3) if f"{probe.id}-{k}" not in taken)
                probe = replace(probe, id=f"{probe.id}-{number}")
            taken.add(probe.id)
            probes.append(probe)
    return probes


def digest_of_directories(probes: Iterable[Probe]) -> str:
    """Return the SHA-256 over all directories of a run, which identifies the set of directories."""
    lines = sorted(f"{probe.id} {probe.digest}\n" for probe in probes if isinstance(probe, DirectoryProbe))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _probe(root: Path, folder: Path, read: CaseDirectory) -> DirectoryProbe:
    parts = folder.relative_to(root).parts or (folder.resolve().name,)
    id = re.sub(r"[^\w.+=@~-]", "_", ".".join(parts), flags=re.ASCII)[:200]
    fed = [array for data in read.data_sets for array in data.inputs.values()]
    kind = next((a.dtype.name for data in read.data_sets for a in (*data.inputs.values(), *data.outputs.values())), "")
    graph = one_line(read.graph, 100) or id
    elements = float(sum(array.size for array in fed))
    traits = frozenset({kind, graph})
    plain = DirectoryProbe(folder, _digest(read), False, id, graph, read.opset, kind, traits=traits, size=(elements, 0))
    try:
        return _documented(plain, read_node_graph(read.model), read)
    except (NotOneNode, IllegalNode, KeyError):
        return plain


def _documented(plain: DirectoryProbe, model: NodeGraph, read: CaseDirectory) -> DirectoryProbe:
    """Return the probe of a model of one or several recurrent nodes.

    Raise IllegalNode or KeyError where no document covers the model, DirectoryError where judging would take too long.
    """
    trial = trials_of(plain.id, read.model, model, [data.inputs for data in read.data_sets])[0]
    weights = model.subject.nodes[0].origin("W")
    symbolic = any(
        not d.HasField("dim_value")
        for value in onnx.load_model_from_string(read.model).graph.input
        for d in value.type.tensor_type.shape.dim
    )
    shared = model_features(weights in model.constants, symbolic, len(trial.feeds) > 1)
    clauses: dict[str, None] = {}
    # With several nodes, the probe has the operator and the features of the first node. Its traits are those of all
    # nodes, because any node may be refused or computed wrongly.
    features: frozenset[str] = frozenset()
    traits: frozenset[str] = frozenset()
    for single in alone(trial):
        node_features = shared
        for feed in single.feeds:
            node, arrays = as_numbers(single.node, feed.inputs)
            node_features |= family_of(node.operator.known_as).node_features(node, arrays) | features_of_levels(
                single.node.bits
            )
            _require_short(plain.id, resolve(node, arrays))
        clauses_of_node = clauses_of(single.node.operator.known_as, single.node.since_version, node_features)
        clauses |= dict.fromkeys(clause.id for clause in clauses_of_node)
        features = features or node_features
        traits |= traits_of(single.node, node_features, resolve(single.node, arrays).format.name)
    first = trial.first
    c, operator = resolve(first.node, first.feeds[-1].inputs), first.node.operator
    return replace(
        plain,
        documented=True,
        op=operator.known_as,
        domain=operator.domain,
        version=operator.since_version,
        type=c.format.name,
        clauses=tuple(clauses),
        features=features,
        groups=tuple(groups_with(features)),
        traits=traits,
        size=(float(math.prod(max(n, 1) for n in (c.T, c.N, c.I, c.H)) * len(c.directions)), len(features)),
    )


def _require_short(id: str, c: Resolved) -> None:
    """Raise DirectoryError for a run with more steps or multiplications than are judged."""
    if c.T > MOST_STEPS:
        raise DirectoryError(f"{id}: has {c.T} steps, and {MOST_STEPS} are judged at most")
    work = max(c.T, 1) * len(c.directions) * max(c.N, 1) * c.H * (c.I + c.H) * _MOST_GATES
    if work > MOST_MULTIPLY_ADDS:
        bound = f"{MOST_MULTIPLY_ADDS:.0e} at most"
        raise DirectoryError(f"{id}: takes {work:.0e} multiplications to be judged, and may take {bound}")


def _digest(read: CaseDirectory) -> str:
    total = hashlib.sha256(read.model)
    for data in read.data_sets:
        for arrays in (data.inputs, data.outputs):
            for name, array in arrays.items():
                total.update(f"\0{name}\0{array.dtype.name}{array.shape}\0".encode("utf-8", "surrogatepass"))
                total.update(array.tobytes())
    total.update(f"{read.rtol!r} {read.atol!r}".encode())
    return total.hexdigest()
