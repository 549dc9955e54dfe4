"""The generation engine: codes to samples, several requests in a step, each a chunk at a time."""
