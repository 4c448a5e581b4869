"""The comparison of plans that run: random models, and the table of results."""
