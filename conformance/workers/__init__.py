"""Processes in which targets run."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    forker="not_to_be_forked",
    forking="NotForked Reserve Zygote",
    hangs="HangBudget",
    in_process="run_in_process",
    job="ClusterError Job Outcome TargetUnavailable",
    launch="PLACEHOLDERS",
    messages="Report message_of outcome_of",
    pool="Pool",
    process="TargetProcess",
    survey="Facts Surveyed facts_of survey_targets way_to_install",
    worker="load_adapter",
)
