"""ONNX test-case directories: written, read, and told whether a runner with one tolerance may judge them."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    directory=(
        "ATOL BrokenFile DataSet DirectoryError NoTestCase OutsideFile RTOL find_directories "
        "read_directory write_directory"
    ),
    fairness="data_sets_of fairness_of",
    manifest="ManifestError OccupiedTree Origin Problem folder_name generate verify",
    foreign="alone read_any trials_of",
    graph_reading="NodeGraph read_subject",
    reading="NotOneNode read_model",
    room="CASE_BYTES DEPTH Room TooLarge",
)
