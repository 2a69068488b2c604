"""A run: its plan, its loop, its merge."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    adapter_kit="AdapterContract",
    conclusion="answer_on conclude no_longer_needed",
    description="description_of",
    engine="execute",
    events="CaseJudged CasesFilled Event ResultsAmended SampleTried TargetBegun",
    expected_update="updated_text",
    filling="cases_to_add lacks_of with_filled",
    fresh="SAMPLE sample_of",
    loop="judged_result",
    planning="planned",
    run="Plan Run TargetRun",
)
