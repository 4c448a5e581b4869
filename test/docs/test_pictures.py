"""The picture of the parts shows what tools/dev/layers.toml allows; pictures show their sources."""

import html
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
ARROW = re.compile(r"(\w+) -> (\w+)")
PARTS = tomllib.loads((ROOT / "tools/dev/layers.toml").read_text())["cxx"]


def arrows_of(name):
    return set(ARROW.findall((IMAGES / f"{name}.dot").read_text()))


def reachable(start, arrows):
    found, rest = set(), [start]
    while rest:
        part = rest.pop()
        more = {to for source, to in arrows if source == part} - found
        found |= more
        rest += more
    return found


def test_arrows_are_allowed():
    wrong = {f"{source} -> {to}" for source, to in arrows_of("parts")
             if source in PARTS and to in PARTS
             and to not in {used.split("/")[0] for used in PARTS[source]["uses"]}}
    assert wrong == set()


def test_every_use_has_a_way():
    arrows = arrows_of("parts")
    drawn = {part for arrow in arrows for part in arrow}
    missing = {f"{part} -> {used}" for part, facts in PARTS.items() if part in drawn
               for used in facts["uses"]
               if "/" not in used and used not in reachable(part, arrows)}
    assert missing == set()
    assert drawn >= set(PARTS) - {"Python"}


@pytest.mark.parametrize("name", sorted(path.stem for path in IMAGES.glob("*.dot")))
def test_pictures_are_up_to_date(name):
    titles = re.findall(r"<title>(.*?)</title>", (IMAGES / f"{name}.svg").read_text())
    shown = {tuple(title.split("->")) for title in map(html.unescape, titles) if "->" in title}
    assert shown == arrows_of(name), f"draw it again: dot -Tsvg {name}.dot -o {name}.svg"
