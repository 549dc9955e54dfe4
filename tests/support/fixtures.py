"""Fixtures that several test folders use; loaded by tests/conftest.py."""
