"""Names and order of the states that optimizers keep.

Artifacts run on GPUs without the compiled module neuroshard._planner, so these are copies of what
include/neuroshard/Model/Optimizer.h says; test/python/planner/test_vocabulary.py compares the
two."""

# The f32 state arrays of each optimizer, in the order in which the runtime keeps them.
STATE_NAMES = {"sgd": (), "adagrad": ("sum",), "rowwise_adagrad": ("sum",),
               "adam": ("exp_avg", "exp_avg_sq"), "momentum": ("momentum_buffer",),
               "adamw": ("exp_avg", "exp_avg_sq"),
               "partial_rowwise_adam": ("exp_avg", "exp_avg_sq"),
               "rowwise_rmsprop": ("square_avg",), "ftrl": ("sum", "linear"),
               "lars_sgd": ("momentum_buffer",), "lamb": ("exp_avg", "exp_avg_sq"),
               "partial_rowwise_lamb": ("exp_avg", "exp_avg_sq"),
               "rowwise_adagrad_with_counter": ("sum", "prev_iter", "row_counter")}

# Those that have one value per row, of the row-wise optimizers.
ROW_STATES = {"rowwise_adagrad": ("sum",), "partial_rowwise_adam": ("exp_avg_sq",),
              "rowwise_rmsprop": ("square_avg",), "partial_rowwise_lamb": ("exp_avg_sq",),
              "rowwise_adagrad_with_counter": ("sum", "prev_iter", "row_counter")}
