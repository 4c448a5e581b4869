"""An artifact's manifest.json as Python reads it. docs/compile.md says what is in it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from neuroshard.errors import TensorError


def load_manifest(artifact: str | os.PathLike) -> dict:
    path = Path(artifact) / "manifest.json"
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is a directory or a pipe")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TensorError(f"{path} cannot be read ({error}); expected the directory that "
                          "neuroshard-compile wrote") from None


@dataclass(frozen=True)
class Manifest:
    """The parts of an artifact's manifest.json that Python needs."""

    plain: dict

    @classmethod
    def read(cls, artifact: str | os.PathLike) -> Manifest:
        plain = load_manifest(artifact)
        if not isinstance(plain, dict) or not plain.get("exchanges"):
            raise TensorError(f"the manifest of the artifact {artifact} has no input of ids; "
                              "compile it again")
        return cls(plain)

    @property
    def exchanges(self) -> list[dict]:
        """One for each input of ids."""
        return self.plain["exchanges"]

    @property
    def joins(self) -> bool:
        """Whether a step can give all results in one tensor."""
        return "embeddings_wait_joined" in self.plain["functions"]

    @property
    def relays(self) -> bool:
        """Whether results of some input go by relay."""
        return any(layout["relays"] for layout in self.plain["layout"])

    def shards_of(self, rank: int) -> list[dict]:
        """The shards of a rank, in the order of the runtime."""
        return [self.plain["shards"][slot] for slot in self.plain["bindings"][rank]["slots"]]

    def table(self, index: int) -> dict:
        return self.plain["tables"][index]
