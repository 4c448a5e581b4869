"""The errors that end a collection with one message and no traceback."""


class CollectError(Exception):
    """What is wrong, where, and what to do about it."""
