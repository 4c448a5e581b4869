"""Keys of tables' weights in state dicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

# What collections of TorchRec, and sharded modules as they do, have between their own names and those of tables.
CONTAINERS = ("embedding_bags", "embeddings")

# Behind a table's key, that of the order of its rows.
ORDER = ".order"


def key_of_ids(key: str) -> str:
    """The key of the map of dynamic ids, beside that of a table's weights: without it rows belong to no id."""
    return f"{key.removesuffix('weight')}ids"


def key_of_order(key: str) -> str:
    """The key of the row of each id, beside that of a table's weights that are by row (docs/row-order.md)."""
    return key.removesuffix(".weight") + ORDER


def keys_of_tables(names: Iterable[str], keys: Iterable[str]) -> dict[str, list[str]]:
    """By table, the keys that may have its weights: its name or <name>.weight if there is such a key, else those that
    end in .<name>.weight and in no longer one of `names`, the tables there are. In keys a name may have
    embedding_bags or embeddings after the path of its collection: <path>.embedding_bags.<table>.weight is of
    <path>.<table>. Only where no such key is there, names may have _ in place of dots, as those of single modules, and
    no key is of two tables."""
    names = set(names)
    found: dict[tuple[str, int], list[str]] = {}  # by name, and by how a key spells it: the best first
    for key in keys:
        bare = key.removesuffix(".weight")
        if bare in names:
            found.setdefault((bare, 0), []).append(key)
        elif key.endswith(".weight"):
            segments = bare.split(".")
            for rank, spell in ((1, _dotted), (2, _underscored)):
                if (name := _longest(segments, names, spell)) is not None:
                    found.setdefault((name, rank), []).append(key)
    chosen: dict[str, list[str]] = {}
    taken: set[str] = set()  # by names that are spelled better
    for rank in range(3):
        for name in names - chosen.keys():
            if own := [key for key in found.get((name, rank), ()) if key not in taken]:
                chosen[name] = own
        taken.update(*chosen.values())
    return {name: chosen.get(name, []) for name in names}


def _longest(segments: list[str], names: Collection[str],
             spell: Callable[[list[str]], Iterator[str]]) -> str | None:
    """The longest of the names that the last segments of a key spell."""
    return next((name for first in range(len(segments)) for name in spell(segments[first:]) if name in names), None)


def _dotted(segments: list[str]) -> Iterator[str]:
    yield ".".join(segments)
    for place, one in enumerate(segments[:-1]):
        if one in CONTAINERS:
            yield ".".join([*segments[:place], *segments[place + 1:]])


def _underscored(segments: list[str]) -> Iterator[str]:
    if len(segments) > 1:
        yield "_".join(segments)
