"""The experiments of the NeuroShard paper: tasks, settings, tables."""
