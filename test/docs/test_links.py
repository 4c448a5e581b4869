"""Every relative link on README.md and the pages of docs/ leads to a file that is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def relative_links(text):
    return [link for link in LINK.findall(text) if "://" not in link]


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))],
                         ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    missing = [link for link in relative_links(page.read_text(encoding="utf-8"))
               if not (page.parent / link).exists()]
    assert missing == []


def test_the_index_names_every_page():
    docs = ROOT / "docs"
    linked = set(relative_links((docs / "index.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    assert pages - linked == set()


def test_links_are_found():
    text = "[a](b.md), ![c](d/e.svg) [f](g.md#h) [i](https://j) [k](#l)"
    assert relative_links(text) == ["b.md", "d/e.svg", "g.md"]
