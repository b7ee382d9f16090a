"""Why nothing can be said about a server."""


class Unusable(Exception):
    """The server cannot be tested at all, such as a command that does not start."""
