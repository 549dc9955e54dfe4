"""`omni bench serve`: loads an OpenAI-compatible endpoint and tells how fast it answers. It knows the API alone."""
