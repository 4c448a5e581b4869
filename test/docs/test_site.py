"""The site of docs/ builds without a warning: every page is in its menu, links and headings are there, nothing
comes from the network, and the search knows every page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
# What a browser loads by itself.
LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=[\"']?([^\"'\s>]+)|<link[^>]*rel=[\"']?(?:stylesheet|icon)"
                    r"[\"']?[^>]*href=[\"']?([^\"'\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", ROOT / "tools/docs/mkdocs.yml",
         "-d", folder], capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site):
    assert PAGES <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_nothing_comes_from_the_network(site):
    for page in PAGES:
        loaded = [one or other for one, other in LOADED.findall((site / page).read_text(encoding="utf-8"))]
        assert loaded and not [one for one in loaded if "://" in one or one.startswith("//")], page


def test_search_knows_every_page(site):
    index = (site / "search/search_index.js").read_text(encoding="utf-8")
    assert not [page for page in PAGES if f'"{page}' not in index]


def test_the_reference_has_every_name_that_its_pages_list(site):
    for page in (ROOT / "docs/api").glob("*.md"):
        html = (site / "api" / page.with_suffix(".html").name).read_text(encoding="utf-8")
        names = re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert [name for name in names if f'id="{name}"' not in html and f"id={name}" not in html] == []


def test_links_to_sources_are_shown_as_paths(site):
    text = (site / "testing.html").read_text(encoding="utf-8")
    assert "tools/dev/layers.toml" in text and 'href="../tools' not in text


def test_headers_of_tables_have_texts(site):
    for page in PAGES:
        assert not re.search(r"<th[^>]*>\s*</th>", (site / page).read_text(encoding="utf-8")), page
