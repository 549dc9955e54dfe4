"""Engines: what runs a stage's model, behind one protocol."""
