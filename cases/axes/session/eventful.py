"""The axes of what sessions do beyond running one data set after the other."""

from __future__ import annotations

from ..axis import Axis
from .after_refusal import AFTER_REFUSAL
from .beside import BESIDE
from .kept import KEPT
from .many import MANY
from .nearly import NEARLY
from .reweighed import REWEIGHED
from .waves import WAVES

EVENTFUL: tuple[Axis, ...] = (REWEIGHED, NEARLY, WAVES, BESIDE, MANY, AFTER_REFUSAL, KEPT)
"""Axes of sessions, in the order in which phases take them. Cases are measured, and quantized, without."""
