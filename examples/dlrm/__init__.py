"""A DLRM in one process per device, with evaluation and checkpoints: README.md in this folder."""
