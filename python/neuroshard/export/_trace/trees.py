"""Writes and reads the nesting of arguments and results, in torch's text form of pytrees."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from importlib import import_module

from torch.utils import _pytree as pytree

from neuroshard.export.errors import ExportError

_BY_KEY = (dict, OrderedDict, defaultdict)


def tree_to_text(spec: pytree.TreeSpec, what: str) -> str:
    """The text of a tree. Raises an ExportError if another process could not read the same tree
    from it."""
    advice = ("; expected tuples, lists, dicts by texts or numbers, TorchRec's types, and "
              "dataclasses and namedtuples that are registered under a name before the export: "
              "torch.export.register_dataclass(kind, serialized_type_name=\"name\"), "
              "torch.utils._pytree._register_namedtuple(kind, serialized_type_name=\"name\")")
    try:
        text = pytree.treespec_dumps(spec)
        made = pytree.treespec_loads(text)
    except Exception as error:  # of types that torch does not document
        raise ExportError(
            f"the {what} cannot be written to a file: {_told(error)}{advice}") from error
    if not same_tree(made, spec):
        raise ExportError(f"the {what} cannot be written to a file: {spec} would be read as "
                          f"{made}{advice}")
    return text


def tree_of_text(text: str, what: str) -> pytree.TreeSpec:
    if '"type": "torchrec.' in text or '"type": "KeyedTensor"' in text:
        require_module("torchrec.sparse.jagged_tensor", what)
    try:
        return pytree.treespec_loads(text)
    except Exception as error:
        raise ExportError(
            f"the {what} cannot be made here: {_told(error)}; register their dataclasses and "
            "namedtuples under the names that they had at the export, before this call") from error


def _told(error: Exception) -> str:
    return str(error).rstrip(".")


def require_module(name: str, what: str) -> None:
    """Imports a module that registers types or operators."""
    try:
        import_module(name)
    except ImportError as error:
        raise ExportError(f"the {what} need {name}, which cannot be imported: {error}") from error


def same_tree(one: pytree.TreeSpec, other: pytree.TreeSpec) -> bool:
    """Whether two trees are equal. JSON has no tuples, so a type's context may have lists in place
    of them; keys of dicts must be equal."""
    if one.type is not other.type or one.num_children != other.num_children:
        return False
    if one.context != other.context and (
            one.type in _BY_KEY or _listed(one.context) != _listed(other.context)):
        return False
    return all(map(same_tree, one.children(), other.children()))


def _listed(value: object) -> object:
    return [_listed(one) for one in value] if isinstance(value, (list, tuple)) else value
