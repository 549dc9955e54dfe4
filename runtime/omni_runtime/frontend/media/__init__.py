"""Media of requests: where they may come from, and how they become arrays. Nothing that a client names is trusted."""
