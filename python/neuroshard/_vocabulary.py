"""The names and constants of problems and plans, from include/neuroshard/Model.

Type checkers need the names written out, as the Literal types beside the dataclasses do;
test/python/planner/test_vocabulary.py compares them."""

from __future__ import annotations

from neuroshard import _planner

_WORDS = _planner.vocabulary()

# By name; of values that are trained, and of results.
ELEMENT_BYTES = _WORDS["element_bytes"]
ELEMENT_TYPES = tuple(ELEMENT_BYTES)
TABLE_TYPES = tuple(_WORDS["element_types"])
WIRE_TYPES = tuple(_WORDS["wire_types"])
ID_TYPES = tuple(_WORDS["id_bytes"])
POOLINGS = tuple(_WORDS["poolings"])
OPTIMIZERS = tuple(_WORDS["optimizers"])
PRICED_OPTIMIZERS = tuple(_WORDS["priced_optimizers"])  # that cost models were trained on
# Sums over all columns of a row that a step needs.
NORMS_PER_ROW = _WORDS["norms_per_row"]
WEIGHT_DECAY_MODES = tuple(_WORDS["weight_decay_modes"])
SEMANTICS = tuple(_WORDS["semantics"])
TIERS = tuple(_WORDS["tiers"])
CACHE_POLICIES = tuple(_WORDS["cache_policies"])
ROUTES = tuple(_WORDS["routes"])
KINDS = tuple(_WORDS["kinds"])
TARGETS = tuple(_WORDS["targets"])
MODES = tuple(_WORDS["modes"])
MEMORY_MODELS = tuple(_WORDS["memory_models"])
# Shares of Access.reuse, and how often an id of each bin occurs at most; the last bin is open.
REUSE_BINS = len(_WORDS["reuse_bin_upper"])
REUSE_BIN_UPPER = tuple(_WORDS["reuse_bin_upper"][:-1])
# A shard's width is a multiple of this, unless the table's is not.
COLUMN_ALIGNMENT = _WORDS["column_alignment"]
