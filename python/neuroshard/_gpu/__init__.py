"""Tables of an artifact in device memory as tensors of PyTorch; for torch_cuda and distributed."""
