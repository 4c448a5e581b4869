"""Checkpoints of sharded tables: their state dict, its files, saving and loading."""
