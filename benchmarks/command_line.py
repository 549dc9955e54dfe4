"""The options that benchmarks over rounds of some seconds have in common."""

import argparse


def options(command: str, description: str | None, of_each: str) -> argparse.Namespace:
    """`seconds` of each round or load, and whether the run is `dry_run`: shown and not written into the ledger."""
    parser = argparse.ArgumentParser(prog=command, description=description)
    parser.add_argument("--seconds", type=float, default=5.0, help=f"of each {of_each} (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    return parser.parse_args()
