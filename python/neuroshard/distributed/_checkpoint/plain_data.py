"""Reads pickles of a checkpoint as data: records of torch.distributed.checkpoint, and what
torch.load reads with weights_only. Anything else could be code, and is refused."""

from __future__ import annotations

import io
import pickle
from typing import IO, Any

import torch
from torch.distributed.checkpoint import filesystem, metadata
from torch.distributed.checkpoint._nested_dict import set_element
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.planner import ReadItem

from neuroshard.distributed._checkpoint.pickle_limits import require_limits

RECORDS = {
    (filesystem.__name__, "_StorageInfo"), ("pathlib", "PosixPath"), ("pathlib", "PurePosixPath"),
    ("collections", "OrderedDict"), ("torch", "Size"), ("torch.serialization", "_get_layout"),
    *((metadata.__name__, name) for name in (
        "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
        "TensorProperties", "TensorStorageMetadata", "_MEM_FORMAT_ENCODING"))}


def _memory_format(kind: object, name: object) -> object:
    """The one use of getattr: some versions of Python pickle members of an enumeration so."""
    formats = metadata._MEM_FORMAT_ENCODING
    if kind is formats and name in formats.__members__:
        return formats[name]
    raise pickle.UnpicklingError(f"it asks for {name!r} of {kind!r}")


class _RecordUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _memory_format
        if (module, name) in RECORDS or (
                module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it holds a {module}.{name}, which is no record of "
                                     "torch.distributed.checkpoint")


def read_records(file: IO[bytes]) -> metadata.Metadata:
    """The metadata of a checkpoint. Raises a ValueError if it is something else or damaged."""
    try:
        data = file.read()
        require_limits(data)
        found = _RecordUnpickler(io.BytesIO(data)).load()
    except Exception as error:  # whatever a damaged pickle leads to
        raise ValueError(f"{file.name} is damaged, or no metadata of a checkpoint: "
                         f"{error}") from error
    if not isinstance(found, metadata.Metadata):
        raise ValueError(f"{file.name} is no metadata of a checkpoint: it holds a "
                         f"{type(found).__name__}")
    return found


def reason_of(error: pickle.UnpicklingError) -> str:
    """Why torch.load did not read a value with weights_only, in one line."""
    return str(error.__context__ or error).partition("\n")[0].partition(" was not an allowed global")[0]


class PlainPlanner(DefaultLoadPlanner):
    """Reads values that are no tensors, such as optimizers' states, without running code."""

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        try:
            plain = torch.load(value, weights_only=True)
        except pickle.UnpicklingError as error:
            raise ValueError(
                f"{read_item.dest_index.fqn}: the checkpoint has more than numbers, texts, lists, "
                "dicts and tensors there, which could be code; name its classes by "
                f"torch.serialization.add_safe_globals() if you trust them: {reason_of(error)}") from error
        name = read_item.dest_index.fqn
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], plain)
        else:
            self.state_dict[name] = plain
