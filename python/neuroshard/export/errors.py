"""What export raises."""

from __future__ import annotations

from neuroshard.errors import Error


class ExportError(Error, ValueError):
    """A model cannot be exported; the text names the place in the model and what can be."""
