"""Media in and out of the frontend: bounded, decoded and encoded outside of the event loop."""
