"""Copies of tables that drift and are averaged after every k-th update (sync_every of their shards)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroshard.errors import TensorError

if TYPE_CHECKING:
    from neuroshard._artifact.manifest import Manifest
    from neuroshard.distributed._engine import Engine


def require_alike(manifest: Manifest, engine: Engine) -> None:
    """Raises a TensorError, on all ranks alike, unless all copies have been averaged since the last
    update."""
    updates = engine.num_updates()
    if engine.averaged_at == updates:
        return
    for shard in manifest.plain["shards"]:
        every = shard.get("sync_every", 0)
        if every and (updates % every or updates == engine.renumbered_at):
            table = manifest.table(shard["table"])["name"]
            since = (f"update {updates - updates % every} of {updates}" if updates % every
                     else f"the number of updates was set to {updates}")
            raise TensorError(f"copies of table {table} drift (sync_every {every}), and were not averaged since "
                              f"{since}; call average_copies() on all ranks first")
