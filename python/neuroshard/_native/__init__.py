"""The compiled parts of NeuroShard: where they lie, the compiler as a command, and the library for PyTorch."""
