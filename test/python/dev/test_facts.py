"""The table of facts in docs/architecture.md: each owner is in the file that it names."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]


def facts():
    text = (ROOT / "docs/architecture.md").read_text()
    section = text.split("## Facts and their owners")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [(re.findall(r"`(\w+)`", owners), file.strip()) for _, owners, file in rows[1:]]


def test_every_owner_is_in_its_file():
    table = facts()
    assert len(table) >= 15
    for owners, file in table:
        text = (ROOT / file).read_text()
        missing = [owner for owner in owners if not re.search(rf"\b{owner}\b", text)]
        assert owners and not missing, f"{file} has no {missing}"
