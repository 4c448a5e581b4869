"""Values of a training state that are neither modules nor tensors, as a checkpoint has them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed.tensor import DTensor
from torch.utils import _pytree as pytree

from neuroshard.distributed._checkpoint.plain_data import reason_of
from neuroshard.distributed._checkpoint.sharded import Sharded
from neuroshard.errors import CheckpointError

# Before a dict or list that is one value of the checkpoint: torch.distributed.checkpoint would make a value of each of its
# entries, and then loads those alone that are there already, by texts in place of the keys.
WHOLE = "neuroshard.whole"


def to_save(name: str, value: Any) -> Any:
    """What torch.distributed.checkpoint saves for a value. Raises a CheckpointError for what load() would refuse.

    Tensors in lists and in dicts of texts are values of their own, which load() fills in place; so are those that are spread over
    ranks."""
    require_plain(name, value)
    if not isinstance(value, (Mapping, list)) or is_spread(value):
        return value
    by_texts = all(isinstance(key.key, str) for path, _ in pytree.tree_flatten_with_path(value)[0] for key in path
                   if isinstance(key, pytree.MappingKey))
    has_tensors = any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))
    return value if has_tensors and by_texts else (WHOLE, value)


def loaded(value: Any) -> Any:
    """What to_save() was given, of what was loaded."""
    return value[1] if isinstance(value, tuple) and len(value) == 2 and value[0] == WHOLE else value


def is_spread(value: Any) -> bool:
    """Whether it has tensors that are spread over ranks."""
    return any(isinstance(leaf, (DTensor, ShardedTensor, Sharded)) for leaf in pytree.tree_leaves(value))


def require_plain(name: str, value: Any) -> None:
    """Raises a CheckpointError for what cannot be written, or what load() would take for code."""
    plain = pytree.tree_map(lambda leaf: None if isinstance(leaf, torch.Tensor) else leaf, value)
    written = io.BytesIO()
    try:
        torch.save(plain, written)
    except Exception as error:  # whatever an object does that is pickled
        raise CheckpointError(f"{name}: it cannot be written: {type(error).__name__}: {error}") from error
    written.seek(0)
    try:
        torch.load(written, weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{name}: expected numbers, texts, tensors, and lists and dicts of these, as load() reads nothing else, "
            f"which could be code: {reason_of(error)}; make these of it, as float() does of numbers of numpy, or name "
            "its classes by torch.serialization.add_safe_globals(), where it is loaded, too") from error
