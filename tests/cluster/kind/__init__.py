"""A real kind cluster with one worker: by Docker and the published node image, or from what is built here alone."""
