"""True faults of the kernels that `benchmarks.naming` runs, by the ids of faults.

The kernels were written first; `kernels/kernels.py` and `kernels/devices.py` describe their faults as text. For each of
those, this module has the ids by which a diagnosis would name it, everywhere or in one scope (``@``). There are several
if one fault has several forms, as in an old version of an operator. A pattern covers only ids with the meaning of the
text, not ids that fit by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Truth:
    """True faults of one kernel.

    faults
        By the author's name of the fault, the patterns of ids that name it. Without patterns the table of faults lacks
        it.
    """

    kernel: str
    faults: Mapping[str, tuple[str, ...]]

    def right(self, fault: str) -> bool:
        """Return whether an id names one of its faults."""
        return any(fnmatchcase(fault, pattern) for patterns in self.faults.values() for pattern in patterns)


def _truth(kernel: str, **faults: str) -> Truth:
    return Truth(kernel, {word.replace("_", "-"): tuple(ids.split()) for word, ids in faults.items()})


_ALL = (
    _truth(
        "library-gru",
        always_linear="gru.linear-before-reset.always gru.linear-before-reset.in-version-1",
        no_clip="clip.ignored",
    ),
    _truth("unrolled", full_length="lengths.ignored", no_coupling="lstm.input-forget.ignored"),
    _truth("vector-tail", tail_bias="bias.recurrent-half-ignored@units-past-4s"),
    _truth(
        "shared-second-direction",
        peepholes_of_first="lstm.peepholes.shared-directions*",
        cell_of_first="initial-states.shared-directions@initial_c",
    ),
    _truth(
        "converted-peepholes",
        peephole_order="lstm.peepholes.ifo",
        old_cell_output="lstm.peepholes.output-from-previous-cell",
    ),
    _truth(
        "whole-flip",
        flip_padding="lengths.reverse-flips-tensor",
        # A row that is flipped with its padding ends where the tensor ends.
        last_of_reverse="outputs.last-row-of-tensor@reverse outputs.last-position",
    ),
    _truth(
        "fast-math",
        rational_tanh="precision.rational-tanh precision.rational-scaled-tanh",
        half_sums="precision.half-sums",
    ),
    _truth(
        "one-activation-list",
        first_activations="activations.backward-as-forward",
        no_alpha="alpha.ignored alpha.one-without-default",
    ),
    _truth(
        "batch-first",
        reshaped_initial="layout.initial-states-reshaped",
        # GRU and RNN have no other state.
        sorted_rows="lengths.states-left-sorted lengths.states-left-sorted@Y_h lengths.outputs-left-sorted@Y_h",
    ),
    _truth(
        "clip-behind",
        # RNN has a single gate, which is the last, and its activation returns the state.
        clip_behind="clip.after-activation clip.on-hidden",
        candidate_bias="bias.last-recurrent-ignored bias.recurrent-half-ignored",
    ),
    _truth(
        "row-blocks",
        block_length="lengths.longest-of-2",
        stale_end="padding.last-position-repeated",
    ),
    _truth(
        "single-precision",
        float64_in_float32="precision.computed-in-single",
        # Y is zero after a short row, and GRU and RNN have no other state, so the two are indistinguishable.
        last_row_of_y="outputs.last-row-of-tensor@forward lengths.states-cleared@forward",
        swapped_bias="lstm.gates.oifc@Rb gru.gates.rzh@Rb",
    ),
    _truth(
        "packed-rows",
        initial_unsorted="lengths.initial-states-unsorted",
        merged_bias="gru.linear-before-reset.bias-outside",
        at_least_one="empty.one-step",
    ),
    _truth("one-workspace", state_left="direction.workspace-left", g_for_h="lstm.activations.h-by-g"),
    _truth("tiles", hard_sigmoid="sigmoid.hard", tile_restart=""),
)

#: By the kernel's name.
TRUTHS = {truth.kernel: truth for truth in _ALL}
