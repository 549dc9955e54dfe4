"""Makes text on transformers' own layers: the ar engine's backend `transformers` for whole models and thinkers."""
