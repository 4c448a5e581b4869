"""Measurements that need PyTorch, some of them ranks of torch.distributed; neuroshard-bench starts
them."""
