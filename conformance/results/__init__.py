"""Results, the journal they stand in, and what is known and kept of them."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    answer="Answer answer_of look_of",
    evidence="Kept write_evidence",
    folder="NoRun RunFolder read_folder recorded_in",
    hits="Hit in_words",
    journal="Journal OccupiedFolder RunMismatch fresh_folder",
    json_schema="json_schemas",
    level_grades="graded_line level_records",
    lines="Amended Begun Ended Observed TargetAsked TargetFinished TargetStarted amendment",
    recorded="CASE FRESH bits_path",
    records="FillingRecord RunRecord SCHEMA",
    result="Result result_of",
    signed_errors="BIAS_ERRORS BIAS_UNITS biased_types biases digits_left grades passing_grades",
    support="ShortFinding ResultsAlike",
)
