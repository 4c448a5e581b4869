"""Watches the ids of a training run and says when another plan would pay."""
