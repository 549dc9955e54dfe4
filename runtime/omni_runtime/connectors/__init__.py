"""Data plane: payloads go from the producing worker to the consuming one by handle."""
