"""The comparison with TorchRec's planner: its cases, contestants, prices and tables."""
