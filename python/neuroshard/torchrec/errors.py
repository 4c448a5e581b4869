"""What is raised for models that TorchRec cannot run under a plan of ours."""

from neuroshard.errors import Unsupported

__all__ = ["Unsupported"]
