"""Benchmarks: each compares with a peer in the same run where there is one, and writes its figures into the ledger."""
