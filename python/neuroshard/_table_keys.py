"""Keys of tables' weights in state dicts."""

from __future__ import annotations

from collections.abc import Iterable


def key_of_ids(key: str) -> str:
    """The key of the map of dynamic ids, beside that of a table's weights: without it rows belong to no id."""
    return f"{key.removesuffix('weight')}ids"


def keys_of_table(name: str, keys: Iterable[str], names: Iterable[str]) -> list[str]:
    """The keys that may have the weights of table `name`: its name or <name>.weight if there is such a key, else
    those that end in .<name>.weight and in no longer one of `names`, the tables there are."""
    keys = list(keys)
    exact = [key for key in keys if key in (name, f"{name}.weight")]
    longer = [f".{other}.weight" for other in names if other != name and other.endswith(f".{name}")]
    return exact or [key for key in keys if key.endswith(f".{name}.weight")
                     and not any(f".{key}".endswith(one) for one in longer)]
