"""What compiled artifacts hold, as Python reads it, also where neuroshard._planner is not there."""
