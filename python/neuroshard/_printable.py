"""Text for people: control characters, which a name may have and a terminal obeys, as escapes."""

_ESCAPES = {code: f"\\x{code:02x}" for code in [*range(0x20), *range(0x7F, 0xA0)]
            if chr(code) != "\n"}


def printable(text: str) -> str:
    """The text with \\x1b for ESC, and so on; lines stay lines."""
    return text.translate(_ESCAPES)
