"""Models of PyTorch and TorchRec: the problem of their tables, and sharded modules in their place."""
