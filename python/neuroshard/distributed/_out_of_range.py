"""What becomes of ids that no row of their table has."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuroshard import _fields
from neuroshard._jagged import Jagged

FORMS = ("error", "drop", "modulo")
ANY = -1  # in place of the rows of a table whose ids are any numbers


def check_form(form: object, unpooled: bool, rows: Sequence[int]) -> str | int:
    """Raises a ValueError for what is none. rows: of all tables."""
    if isinstance(form, int) and not isinstance(form, bool):
        least = min(rows)
        if not -least <= form < least:
            raise ValueError(f"out_of_range: expected a row that all tables have, from {-least} to {least - 1}, "
                             f"found {form}")
        return form
    if form not in FORMS:
        raise ValueError("out_of_range: expected \"error\", \"drop\", \"modulo\" or the number of a row, found "
                         f"{_fields.shown(form)}")
    if form == "drop" and unpooled:
        raise ValueError("out_of_range: expected \"error\", \"modulo\" or the number of a row, as results "
                         "that are not pooled have a row for each id, found \"drop\"")
    return form


class OutOfRange:
    """Changes ids that are negative, or not below the rows of their table, before they are sent."""

    def __init__(self, form: str | int) -> None:
        """form: as check_form() gives it. use() comes before all else."""
        self.form = form
        self._found = torch.zeros((), dtype=torch.int64)

    def use(self, rows: Sequence[int]) -> None:
        """rows: of the table of each feature of the input, or ANY."""
        self._rows = torch.tensor(rows)

    @property
    def found(self) -> int:
        """How many there were so far."""
        return int(self._found)

    def apply(self, ids: Jagged, counts: bool = True) -> Jagged:
        """ids: as operators take them. Wrong offsets stay as they are: the step refuses them. counts:
        whether they are among those found. An exported program does not count."""
        bags = (ids.offsets.shape[0] - 1) // len(self._rows)
        if self.form == "error" or ids.ids.dim() != 1 or ids.offsets.dim() != 1 or bags <= 0:
            return ids
        if self._rows.device != ids.ids.device:
            self._rows, self._found = (one.to(ids.ids.device) for one in (self._rows, self._found))
        limits = self._limits(ids, bags)
        wrong = ((ids.ids < 0) | (ids.ids >= limits)) & (limits != ANY)
        if ids.ids.device.type == "cpu" and not torch.compiler.is_compiling() and not bool(wrong.any()):
            return ids
        if self.form == "drop" and not are_offsets(ids):
            return ids
        if counts and not torch.compiler.is_exporting():
            self._found = self._found + wrong.sum()
        if self.form == "drop":
            return dropped(ids, ~wrong)
        others = ids.ids.remainder(limits) if self.form == "modulo" \
            else torch.remainder(limits + self.form, limits)
        return ids._replace(ids=torch.where(wrong, others.to(ids.ids.dtype), ids.ids))

    def _limits(self, ids: Jagged, bags: int) -> torch.Tensor:
        """The rows of each id's table."""
        places = torch.arange(ids.ids.shape[0], device=ids.ids.device)
        feature = torch.searchsorted(ids.offsets[bags::bags].contiguous(), places, right=True)
        return self._rows[feature.clamp(max=len(self._rows) - 1)]


def are_offsets(ids: Jagged) -> bool:
    """Whether offsets go from 0 to the number of ids and do not decrease."""
    first, last = ids.offsets[0], ids.offsets[-1]
    return bool((first == 0) & (last == ids.ids.shape[0]) & (ids.offsets.diff() >= 0).all())


def counts_of(ids: Jagged, features: int) -> list[int] | None:
    """The ids of each feature, by their offsets; None if these are wrong."""
    batch = (ids.offsets.shape[0] - 1) // features
    if batch <= 0 or ids.ids.dim() != 1:
        return None
    begins = ids.offsets[::batch].tolist()
    counts = [end - begin for begin, end in zip(begins, begins[1:])]
    is_right = (len(counts) == features and begins[0] == 0 and min(counts) >= 0
                and begins[-1] == ids.ids.shape[0])
    return counts if is_right else None


def dropped(ids: Jagged, kept: torch.Tensor) -> Jagged:
    """The ids that are kept, in the same bags."""
    before = torch.cat([kept.new_zeros(1, dtype=torch.int64), kept.cumsum(0)])
    return ids._replace(ids=ids.ids[kept], offsets=before[ids.offsets],
                        weights=None if ids.weights is None else ids.weights[kept])
