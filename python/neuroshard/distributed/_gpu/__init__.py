"""Plans on the GPUs of a process group; docs/distributed-gpu.md explains how."""
