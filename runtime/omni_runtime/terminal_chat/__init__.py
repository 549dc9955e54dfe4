"""`omni chat`: a quick try of a served model from a terminal. A client like any other; it knows the API alone."""
