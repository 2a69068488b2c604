"""What people read: pages made from run directories. Nothing here decides a verdict."""

from .page import write_report

__all__ = ["write_report"]
