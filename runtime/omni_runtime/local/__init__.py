"""Local mode: `omni serve` runs the OmniModel file of a cluster as processes of this machine, under one supervisor."""
