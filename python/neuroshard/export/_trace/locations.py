"""The source of a node in the model, for locations of the IR and for messages."""

from __future__ import annotations

import os
import re
import sysconfig

import torch

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_LIBRARIES = tuple({os.path.realpath(path) + os.sep
                    for path in (*sysconfig.get_paths().values(),
                                 os.path.dirname(os.path.dirname(torch.__file__)),
                                 os.path.dirname(os.path.abspath(__file__)))})


def source_of(node: torch.fx.Node) -> tuple[str, int] | None:
    """The innermost line of the user's own code, its file relative to the working directory if
    it is below."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not is_library(frame[0])]
    if not (own or frames):
        return None
    file, line = (own or frames)[-1]
    return relative(file), int(line)


def is_library(file: str) -> bool:
    """Whether a file belongs to an installed package and not to the user."""
    return os.path.realpath(file).startswith(_LIBRARIES)


def relative(file: str) -> str:
    """The path relative to the working directory, if it lies below."""
    path = os.path.relpath(file)
    return file if path.startswith(os.pardir) else path


def module_of(node: torch.fx.Node) -> str:
    """The path of the innermost module, "" for the model itself."""
    stack = node.meta.get("nn_module_stack") or {}
    return list(stack.values())[-1][0] if stack else ""


def describe(node: torch.fx.Node) -> str:
    """The node in messages, such as "embedding (model.py:12, module user)"."""
    where = []
    if source := source_of(node):
        where.append(f"{source[0]}:{source[1]}")
    if path := module_of(node):
        where.append(f"module {path}")
    return node.name + (f" ({', '.join(where)})" if where else "")


def quote(text: str) -> str:
    """The text as a string of MLIR."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"\"\\" else f"\\{byte:02X}"
             for byte in text.encode(errors="backslashreplace"))
    return '"' + "".join(plain) + '"'


def location(node: torch.fx.Node, name: str = "") -> str:
    """In MLIR's syntax, the name around file and line."""
    name = name or module_of(node)
    source = source_of(node)
    line = f"{quote(source[0])}:{source[1]}:0" if source else "unknown"
    return f"loc({quote(name)}({line}))" if name else f"loc({line})"
