"""Verdicts on what a target did."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    divergence="apart ratio_text",
    judgement="DECLINED FAILING UNTRIED Judgement NO_CLEAN_REFUSAL Verdict would_allow",
    verdict="judge judge_each",
    vocabulary="FLAGS NO_FAILURE STATES STATUS_WORDS VERDICTS happening outcome_told word",
)
