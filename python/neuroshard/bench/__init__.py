"""Measurements that run on the ranks of torch.distributed; neuroshard-bench starts them."""
