"""Named, executable faults, and what they explain or show."""
