"""Subcommands of `omni` that need the operator's code."""
