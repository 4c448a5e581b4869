"""Exported models as files."""
