"""Every relative link on README.md and the pages of docs/ leads to a file, and a heading in it,
that is there. So does every file that these pages, and comments in C++, name."""

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "models/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
SOURCE = re.compile(r"(?<![\w./*-])(?:\./)?([\w*][\w./*-]*\.(?:h|cpp|py|td|def|mlir|cu|toml))\b")
COMMENT = re.compile(r"//[^\n]*")
IN_COMMENT = re.compile(r"(?<![\w./*-])([\w*][\w./*-]*\.(?:h|cpp|py|td(?:\.in)?|def|md))\b")
# "`name` in [File.cpp](path)", as the walkthrough says where things are.
NAMED_IN = re.compile(r"`(\w+)`\s+in\s+\[[^\]]*\]\(([^)#]+)\)")
# A path into the checkout, as the commands of a page that only shows them have it.
SHOWN = re.compile(r"(?<![\w./-])(?:examples|include|lib|models|test|tools|workloads)/[\w./*{},-]+")
BRACES = re.compile(r"(.*)\{(.*)\}(.*)")
# Files of a page's own example, and those that are not ours.
FOREIGN = {"m.mlir", "path.mlir", "xxhash.h"}


def relative_links(text):
    return [link for link in LINK.findall(text) if "://" not in link]


def anchors(text):
    """The names under which a reader of the repository links to the headings of a page."""
    headings = HEADING.findall(FENCED.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def named_files(text):
    """The source files that the prose of a page names; `*` stands for any characters."""
    prose = FENCED.sub("", text).replace("\\", "")
    return {name for name in SOURCE.findall(prose) if name not in FOREIGN}


def expanded(path):
    """The paths that a shell makes of one with {a,b}."""
    braces = BRACES.fullmatch(path)
    return [braces[1] + one + braces[3] for one in braces[2].split(",")] if braces else [path]


def shown_paths(text):
    return {path for block in FENCED.findall(text) if block.startswith("```sh\n")
            for shown in SHOWN.findall(block) for path in expanded(shown)}


def source_files():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout
    return [file for file in listed.splitlines() if (ROOT / file).exists()]


class Files:
    """The files of the checkout by the ends of their paths."""

    def __init__(self, files):
        self.ends = {end for file in files for end in ends_of(file)}

    def has(self, name):
        return name in self.ends or ("*" in name and any(fnmatch(end, name) for end in self.ends))


def ends_of(path):
    parts = path.split("/")
    return ["/".join(parts[first:]) for first in range(len(parts))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    missing = []
    for link in relative_links(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            missing.append(link)
    assert missing == []


def test_named_files_are_there():
    files = Files(source_files())
    missing = {f"{page.relative_to(ROOT)}: {name}" for page in PAGES
               for name in named_files(page.read_text(encoding="utf-8")) if not files.has(name)}
    assert missing == set()


def test_files_that_comments_name_are_there():
    listed = source_files()
    files = Files(listed)
    missing = {f"{file}: {name}" for file in listed if file.endswith((".h", ".cpp", ".td", ".def"))
               for comment in COMMENT.findall((ROOT / file).read_text(errors="replace"))
               for name in IN_COMMENT.findall(comment) if not files.has(name)}
    assert missing == set()


def test_paths_of_shown_commands_are_there():
    missing = {f"{page.relative_to(ROOT)}: {path}" for page in PAGES
               for path in shown_paths(page.read_text(encoding="utf-8"))
               if not any(ROOT.glob(path.rstrip("/")))}
    assert missing == set()


def test_names_are_in_the_files_that_pages_say():
    found = [(page, name, file) for page in PAGES
             for name, file in NAMED_IN.findall(page.read_text(encoding="utf-8"))]
    assert len(found) > 25
    missing = {f"{file}: {name}" for page, name, file in found
               if not re.search(rf"\b{name}\b", (page.parent / file).read_text())}
    assert missing == set()


def test_the_index_names_every_page():
    docs = ROOT / "docs"
    linked = set(relative_links((docs / "index.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    assert pages - linked == set()


def test_links_headings_and_names_are_found():
    text = ("# A `b`: c-d\n[a](b.md), ![c](d/e.svg) [f](g.md#h) [i](https://j) [k](#l)\n"
            "```sh\n# no heading, no/file.h\ncp lib/{A/b,C/d}.cpp -o out/e.so\n```\n"
            "`x/A.h`, `y/t_\\*.py`\n")
    assert relative_links(text) == ["b.md", "d/e.svg", "g.md#h", "#l"]
    assert anchors(text) == {"a-b-c-d"}
    assert shown_paths(text) == {"lib/A/b.cpp", "lib/C/d.cpp"}
    assert named_files(text) == {"x/A.h", "y/t_*.py"}
