"""The talker engine: a talker of transformers, token by token, while the thinker's states still come."""
