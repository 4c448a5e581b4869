"""The committed reference pages are what mlir-tblgen writes from the .td files."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "docs" / "reference"
GENERATED = Path(os.environ["NEUROSHARD_BUILD_DIR"]) / "docs" / "reference"


def pages(folder):
    return {path.relative_to(folder) for path in folder.rglob("*.md")}


def test_the_same_pages_exist():
    assert pages(GENERATED), "the build made no reference page"
    assert pages(COMMITTED) == pages(GENERATED)


@pytest.mark.parametrize("page", sorted(pages(GENERATED)), ids=str)
def test_page_is_up_to_date(page):
    committed = COMMITTED / page
    assert committed.exists() and committed.read_text() == (GENERATED / page).read_text(), (
        f"docs/reference/{page} is out of date; run: cmake --build build/release "
        "--target neuroshard-doc")
