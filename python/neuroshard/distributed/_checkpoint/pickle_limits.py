"""Limits of a pickle: one that is small must not fill the memory or overflow the stack."""

from __future__ import annotations

import pickle
import pickletools

MAX_NESTING = 64

_MARK = pickletools.markobject
# Their results are hashed with all that is in them, by recursion in C.
_HASHED = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "REDUCE", "NEWOBJ", "NEWOBJ_EX"}
_STORE = {"PUT", "BINPUT", "LONG_BINPUT"}
_LOAD = {"GET", "BINGET", "LONG_BINGET"}


def require_limits(data: bytes) -> None:
    """Raises an UnpicklingError if the pickle nests tuples and records deeper than MAX_NESTING, or
    numbers objects beyond its length, for which the unpickler would make room."""
    stack: list[int | None] = []  # How deep each object nests; None: a mark.
    memo: dict[int, int] = {}
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if name in _STORE and argument > len(data):
            raise pickle.UnpicklingError(f"it has {len(data)} bytes, but numbers an object "
                                         f"{argument}")
        if name in _STORE or name == "MEMOIZE":
            memo[len(memo) if name == "MEMOIZE" else argument] = (stack[-1] if stack else 0) or 0
            continue
        taken = _take(stack, opcode)
        depth = 1 + max(taken, default=0) if name in _HASHED else 0
        if depth > MAX_NESTING:
            raise pickle.UnpicklingError("it nests tuples and records more than "
                                         f"{MAX_NESTING} deep")
        for made in opcode.stack_after:
            stack.append(None if made is _MARK else memo.get(argument, 0) if name in _LOAD
                         else depth)


def _take(stack: list[int | None], opcode: pickletools.OpcodeInfo) -> list[int]:
    """Takes what an opcode takes off the stack; that may be all objects up to a mark."""
    before = opcode.stack_before
    taken = []
    if pickletools.stackslice in before:
        while stack and (depth := stack.pop()) is not None:
            taken.append(depth)
        before = before[:before.index(_MARK)]
    taken += [stack.pop() or 0 for _ in before[:len(stack)]]
    return taken
