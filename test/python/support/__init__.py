"""What the Python tests share: models, plans, batches, oracles, and running artifacts."""
