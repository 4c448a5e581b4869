"""What is raised for tensors and artifacts that cannot be used."""

from neuroshard.errors import Error


class TensorError(Error, ValueError):
    """A tensor or an artifact is not what the tables need; the text says what they do."""
