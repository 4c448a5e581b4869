"""Traces a model with torch.export: its arguments, their sizes, and what it may contain."""
