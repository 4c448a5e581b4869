"""What row caches of shards in lower tiers have done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from neuroshard._artifact.manifest import Manifest


@dataclass(frozen=True)
class CacheFigures:
    """One cache since its tables were opened. A row counts once for each batch that uses it, however
    many of the batch's ids name it.

    places: rows that it has room for. batches: so far. rows: that batches used. hits: of these, those that were
    there; the others were fetched. written: rows that were changed and written back. most_spilled:
    the most rows at a time that had to lie beside the places, since these were all in use.
    wait_ms: how long steps have waited for rows, those of this rank's shards before this one once they
    are there."""

    places: int
    batches: int
    rows: int
    hits: int
    written: int
    most_spilled: int
    wait_ms: float

    @property
    def fetched(self) -> int:
        """Rows that were not there."""
        return self.rows - self.hits

    @property
    def hit_rate(self) -> float:
        """Hits by rows; 1 before the first batch."""
        return self.hits / self.rows if self.rows else 1.0


def cache_figures(figures_of: Callable[[int], Sequence[int]], manifest: Manifest,
                  rank: int) -> dict[str, CacheFigures]:
    """By the names of the shards that have a cache. figures_of: those of a shard by its number."""
    figures = {spec["name"]: figures_of(index)
               for index, spec in enumerate(manifest.shards_of(rank)) if spec["tier"] != "hbm"}
    return {name: CacheFigures(*counts, wait_ms=nanoseconds / 1e6)
            for name, (*counts, nanoseconds) in figures.items()}
