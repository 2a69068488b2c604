"""Types that a file claims for the outputs of a node, against those that follow from the node's inputs."""

from __future__ import annotations

from collections.abc import Iterator

from ..models.tensor_type import type_from
from .general import layout_of, shapes_of
from .sizes import in_words, sizes_known
from .subject import NodeSubject


def stale_claims(subject: NodeSubject) -> Iterator[str]:
    """Yield the contradictions between the claimed shapes of a node's outputs and the shapes of its inputs."""
    formal = shapes_of(subject)
    certain = {name: shape for name, shape in formal.items() if name in subject.inputs}
    certain = {name: shape for name, shape in certain.items() if subject.inputs[name].type.certain}
    sizes = sizes_known(subject, certain)
    for name, output in zip(subject.operator.outputs, subject.outputs, strict=False):
        claims, form = subject.scope.claims, subject.operator.tensors.get(name)
        claimed = type_from(claims[output], False).shape if output in claims else None
        if claimed is None or form is None:
            continue
        shape = form.shape(layout_of(subject))
        follows = tuple(sizes[e.size] * e.times if e.size in sizes else None for e in shape)
        pairs = zip(claimed, follows, strict=False)
        if len(claimed) != len(shape) or any(isinstance(c, int) and f is not None and c != f for c, f in pairs):
            has = f"by its inputs it has {in_words(follows)}, [{', '.join(map(str, shape))}]"
            yield f"the file declares {in_words(claimed)} as the shape of {name}, while {has}"
