"""From results to findings and what explains them."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    {
        "causes": (
            "Subject",
            "explaining",
            "explains",
            "needs_in_words",
            "shared",
            "with_causes",
        ),
        "conditions": (
            "condition_of",
            "message_kind",
            "worded",
        ),
        "disagreements": ("disagreements_of",),
        "experiments": (
            "Budget",
            "Need",
            "Shrunk",
            "alike",
            "shrink",
        ),
        "explainer": (
            "Explainer",
            "explained",
        ),
        "failing_case": (
            "DIAGNOSED",
            "FailingCase",
            "failing_case_of",
        ),
        "findings": (
            "findings_of",
            "titled",
        ),
        "foretelling": (
            "Foretold",
            "foretold",
            "fresh_specs",
        ),
        "needed_classes": ("with_needed_classes",),
        "search": (
            "Search",
            "diagnose",
        ),
    },
)
