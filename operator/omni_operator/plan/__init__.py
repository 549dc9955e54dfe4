"""Decisions, as pure functions of what was observed: no input, no output, no clock."""
