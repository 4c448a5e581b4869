"""Helpers of the Python tests: models, plans, batches, oracles, and running artifacts."""
