"""Findings, from results, and what explains them."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    ahead="Ahead",
    causes="Subject",
    conditions="condition_of message_kind",
    disagreements="disagreements_of",
    experiments="Budget Shrunk alike shrink",
    explainer="Diagnosis Explainer diagnose explained",
    explanations="Explaining Memory explains leaving_open",
    failing_case="DIAGNOSED FailingCase failing_case_of",
    findings="findings_of joined titled",
    foretelling="Foretold Fresh foretold fresh_specs is_constant",
    measured="Deviation Source deviations_of function_classes sources_of summing_faults",
    needed_classes="with_needed_classes",
    needs="Need axis_of needs_in_words stated",
    places="Look places_in_words places_of telling_places",
    search="Search",
    single="Single",
    telling="with_causes",
)
