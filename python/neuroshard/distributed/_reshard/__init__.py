"""Moves the tables of a running model from one plan to another, in memory."""
