"""What is raised for models that TorchRec cannot run under a plan of ours."""

from neuroshard.errors import Error


class Unsupported(Error, ValueError):
    """A module, a constraint or a plan that cannot be carried over; the text names it, what it
    has, and what is expected."""
