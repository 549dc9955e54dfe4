"""Test clusters: a control plane as plain processes, and a real kind cluster, both from programs built here.

Used from a shell as `python -m tests.cluster` and from tests through `tests.cluster.fixtures`.
"""
