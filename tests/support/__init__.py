"""Builders, fakes and harnesses that several test folders share; one file per concern."""
