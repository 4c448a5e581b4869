"""The ranks of a process group: what they agree on, and how an error on one reaches all."""
