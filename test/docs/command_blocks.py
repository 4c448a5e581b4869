"""Finds the commands that a Markdown page shows, and the output it shows for them.

A ```bash block is a command. A fenced block of any other kind directly below it, with
nothing but blank lines between, is what the command prints, standard output and standard
error together. In shown output a line `...` stands for any number of lines, and `...`
inside a line for any characters.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FRONT_DOOR = re.compile(r"\./dev (demo|check)( --all)?")
FENCE = re.compile(r"^```(\S*).*\n((?:.*\n)*?)```[ ]*$", re.MULTILINE)


@dataclass
class CommandBlock:
    page: Path
    line: int
    script: str
    output: str | None

    @property
    def is_front_door(self):
        """True for the commands that run this test suite, or the whole demo, themselves."""
        lines = [line for line in self.script.splitlines() if line.strip()]
        return all(FRONT_DOOR.fullmatch(line.strip()) for line in lines)


def blocks_of_text(page, text):
    fences = list(FENCE.finditer(text))
    if text.count("\n```") + text.startswith("```") != 2 * len(fences):
        raise ValueError(f"{page}: a ``` fence is not closed, or is indented")
    blocks = []
    for index, fence in enumerate(fences):
        if fence[1] != "bash":
            continue
        output = None
        if index + 1 < len(fences):
            below = fences[index + 1]
            if below[1] != "bash" and not text[fence.end():below.start()].strip():
                output = below[2]
        line = text.count("\n", 0, fence.start()) + 1
        blocks.append(CommandBlock(page, line, fence[2], output))
    return blocks


def blocks_of_page(page):
    return blocks_of_text(page, page.read_text(encoding="utf-8"))


def output_pattern(shown):
    """The regular expression that matches exactly the outputs which `shown` stands for."""
    parts = []
    for line in shown.rstrip().splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"\n")
    return "".join(parts)


def output_matches(shown, actual):
    lines = [line.rstrip() for line in actual.rstrip().splitlines()]
    text = "".join(line + "\n" for line in lines)
    return re.fullmatch(output_pattern(shown), text) is not None
