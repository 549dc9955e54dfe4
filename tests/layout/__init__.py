"""Checks on the shape of the source: size bars, blanket excepts, exports, addresses, and the docs' commands."""
