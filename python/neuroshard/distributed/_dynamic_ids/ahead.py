"""Ids of the coming steps of a module with dynamic ids become rows while the current one runs."""

from __future__ import annotations

from typing import Protocol

import torch

from neuroshard._jagged import Jagged
from neuroshard.distributed._dynamic_ids.translation import Ahead, Translation
from neuroshard.distributed._pending import Pending


class Steps(Protocol):
    """What a sharded collection has for its own steps."""

    def _checked(self, features: object) -> tuple[Jagged, bool]: ...

    def _learns(self) -> bool: ...

    def _start(self, ids: Jagged, keyed: bool, ahead: Ahead | None = None) -> Pending: ...

    def _refuse(self, text: str) -> None: ...


class Mapped:
    """The ids of one step. error: why they cannot be sent."""

    def __init__(self, ahead: Ahead, keyed: bool, error: Exception | None) -> None:
        self.ahead, self.keyed, self.error = ahead, keyed, error


class MappingAhead:
    """Maps the ids of steps that SentIds sends, in their order."""

    def __init__(self, module: Steps, translation: Translation) -> None:
        self._module, self._translation = module, translation

    def begin(self, features: object) -> Mapped:
        """Begins what drop() or send() ends; these go in the order of the steps."""
        ids, keyed, error = None, False, None
        with torch.inference_mode(False), torch.enable_grad():  # whatever the mode of the step before
            try:
                ids, keyed = self._module._checked(features)
            except Exception as failure:  # noqa: BLE001, raised at its step
                error = failure
            return Mapped(self._translation.begin(ids, self._module._learns()), keyed, error)

    def drop(self, mapped: Mapped) -> None:
        """Of features that could not be made, which the step says."""
        self._translation.finish(mapped.ahead)

    def send(self, mapped: Mapped) -> Pending:
        """Raises what the step raises."""
        ids = self._translation.finish(mapped.ahead)
        if mapped.error:
            self._module._refuse(str(mapped.error))
            raise mapped.error
        return self._module._start(ids, mapped.keyed, mapped.ahead)

    def keep(self, mapped: Mapped) -> bool:
        """To be called when the step begins. Whether all is as was expected; else recall() must follow."""
        if not self._translation.holds(mapped.ahead, self._module._learns()):
            return False
        self._translation.keep(mapped.ahead)
        return True

    def recall(self, tells: bool = True) -> None:
        """Undoes all that was begun and not kept. tells: a rank that keeps it instead ends the group."""
        self._translation.recall(tells)
