"""What people read: pages made from run directories. Nothing here decides a verdict."""

from .page import prepare, report_on, write_report
from .run import read_runs

__all__ = ["prepare", "read_runs", "report_on", "write_report"]
