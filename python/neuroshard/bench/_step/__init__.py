"""The engines that neuroshard-bench step measures, and its table."""
