"""Pages for people, made from run directories. Nothing here decides a verdict."""

from .._face import face
from .page import prepare, report_on, write_report
from .run import read_runs

__all__ = ["prepare", "read_runs", "report_on", "write_report"]

__getattr__, __dir__ = face(
    __name__,
    certificate="certificate_of pages_of",
    comparison="Changes Comparison compare",
    disagreements="PAGE",
    legible="printable",
    evidence="read_exhibit",
    findings="in_words",
    junit="junit_xml",
    markdown="difference_markdown summary_markdown",
    page="render_certificate render_difference",
    payload="SHARED",
    picture="band pictures_of_levels times",
    results="columns_of",
    site="write_site",
    run="read_run",
)
