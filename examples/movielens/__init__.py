"""A DLRM that learns from MovieLens-100k whether a user will like a movie, trained with its
tables sharded by NeuroShard, unsharded by PyTorch, and sharded by TorchRec: docs/demo.md."""
