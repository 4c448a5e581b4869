"""Options, workloads, plans and batches that the commands read."""
