"""The suite against faults and conforming kernels."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    coverage="Cover MOST_MODELS OWED Shares",
    exposure="Shown parts_shown runs_shown",
    interactions="Tally faults_of pool_tally shown_by space_of tally",
    lacking="CaseTable lacking_of named",
    power="least_rejected power_of",
    proof="Proof prove",
    reach="Reach",
    staged="Implementation Stage judge_staged staged_outcome",
    tolerance="shown_to_runner",
)
