"""Manifests, as pure functions of a resolved model: same input, same bytes. One file for each kind of child."""
