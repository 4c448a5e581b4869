"""TorchRec's sharding plans, in the words of this package's."""
