"""What decoders say of bytes that they do not turn into media."""


class UnreadableMediaError(ValueError):
    """The bytes are damaged, of another kind, or more than they may become; the text says which."""
