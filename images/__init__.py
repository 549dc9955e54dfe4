"""Container images: recipes, and the tool that builds them into OCI archives (`python -m images build`)."""
