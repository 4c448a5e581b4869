"""The engines that neuroshard-bench step measures."""
