"""Torch work of a stage in turns on one thread: what the diffusion and the generation engine have in common."""
