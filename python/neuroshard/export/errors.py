"""Errors of export and load_export."""

from __future__ import annotations

from neuroshard.errors import Error


class ExportError(Error, ValueError):
    """A model cannot be exported, called, saved or loaded; the text names the place in the model,
    or the file, and what is expected."""
