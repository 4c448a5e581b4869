"""Names and order of the states that optimizers keep.

Artifacts run on GPUs without the compiled module neuroshard._planner, so these are copies of what
include/neuroshard/Model/Optimizer.h says; test/python/planner/test_vocabulary.py compares the
two."""

# The f32 state arrays of each optimizer, in the order in which the runtime keeps them.
STATE_NAMES = {"sgd": (), "adagrad": ("sum",), "rowwise_adagrad": ("sum",),
               "adam": ("exp_avg", "exp_avg_sq")}

# Optimizers whose state is one value per row.
ROW_WISE = ("rowwise_adagrad",)
