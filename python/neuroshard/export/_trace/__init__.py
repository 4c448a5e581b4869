"""Traces a model with torch.export: its arguments, their sizes, and what the trace may hold."""
