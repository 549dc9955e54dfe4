"""Models from Python: `Omni` and `AsyncOmni`, over the processes of `omni serve` without its HTTP frontend."""
