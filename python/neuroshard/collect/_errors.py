"""The error that ends a collection with one message and no traceback."""


class CollectError(Exception):
    """The text says what is wrong, where, and what to do."""
