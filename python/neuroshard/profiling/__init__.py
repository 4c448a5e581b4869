"""Measures what batches do to tables, for the statistics of a problem."""
