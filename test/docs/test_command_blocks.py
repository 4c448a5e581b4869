"""The commands that README.md and docs/ show work, and print what the pages show.

All blocks of a page run in order, in one folder that looks like the checkout: it holds
a link to everything there (build/release being the build under test), and takes the files
that the commands write. Variables and the current folder carry over from block to block,
as in one terminal.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from command_blocks import blocks_of_page, blocks_of_text, output_matches

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [block for page in PAGES for block in blocks_of_page(page) if not block.is_front_door]
BLOCK_LIMIT_S = 1200
# A build with sanitizers has no Python module and no plugin, as plain programs cannot load them;
# nor do they link its libraries.
HAS_MODULE = not re.search(r"^NEUROSHARD_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(),
                           re.MULTILINE)


class Terminal:
    """Runs scripts one after another as one shell session would."""

    def __init__(self, folder):
        self.state = folder / "state.sh"
        self.checkout = folder / "checkout"
        self.checkout.mkdir()
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "build"):
                (self.checkout / entry.name).symlink_to(entry)
        (self.checkout / "build").mkdir()
        (self.checkout / "build" / "release").symlink_to(BUILD)
        (self.checkout / "build" / "venv").symlink_to(ROOT / "build" / "venv")
        self.state.write_text(f"cd {shlex.quote(str(self.checkout))}\n")

    def run(self, script):
        state = shlex.quote(str(self.state))
        text = (f"set -eo pipefail\nsource {state}\n{script}\n"
                f"{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} >{state}\n")
        # A newcomer has the tools on PATH only if the page says how to put them there.
        environment = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR")
                       if name in os.environ}
        environment["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return subprocess.run(["bash", "-c", text], env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=BLOCK_LIMIT_S)


@pytest.fixture(scope="module")
def terminals(tmp_path_factory):
    """One terminal for each page."""
    made = {}

    def terminal_of(page):
        if page not in made:
            made[page] = Terminal(tmp_path_factory.mktemp(page.stem))
        return made[page]
    return terminal_of


@pytest.mark.parametrize(
    "block", BLOCKS, ids=lambda block: f"{block.page.relative_to(ROOT)}:{block.line}")
def test_command_block(block, terminals):
    if not HAS_MODULE and (block.page.name in ("python.md", "embedding.md", "planner.md")
                           or "import neuroshard" in block.script):
        pytest.skip("a build with sanitizers has no Python module")
    result = terminals(block.page).run(block.script)
    if result.returncode != 0:
        pytest.fail(f"{block.script}exit code {result.returncode}:\n{result.stdout}", pytrace=False)
    if block.output is not None and not output_matches(block.output, result.stdout):
        pytest.fail(f"{block.script}shown:\n{block.output}\nprinted:\n{result.stdout}",
                    pytrace=False)


def test_shown_output_belongs_to_the_command_directly_above():
    page = "```bash\na\n```\n\n```text\nout\n```\n```mlir\nnot output\n```\n```bash\nb\n```\ntext\n```text\nx\n```\n"
    blocks = blocks_of_text("page", page)
    assert [(block.line, block.script, block.output) for block in blocks] == [
        (1, "a\n", "out\n"), (11, "b\n", None)]


def test_front_door_blocks_are_only_the_two_commands():
    page = "```bash\n./dev demo\n```\n```bash\n./dev check\nls\n```\n```bash\n./dev check --all\n```\n"
    assert [block.is_front_door for block in blocks_of_text("page", page)] == [True, False, True]


def test_unclosed_fence_is_an_error():
    with pytest.raises(ValueError, match="not closed"):
        blocks_of_text("page", "```bash\nls\n")


@pytest.mark.parametrize("shown, actual, matches", [
    ("a\nb\n", "a\nb\n", True),
    ("a\nb\n", "a  \nb\n\n", True),
    ("a\n", "a\nb\n", False),
    ("a\n...\nc\n", "a\nc\n", True),
    ("a\n...\nc\n", "a\nb\nb\nc\n", True),
    ("a\n...\nc\n", "a\nb\n", False),
    ("took ... ms\n", "took 1.5 ms\n", True),
    ("took ... ms\n", "took 1.5 s\n", False),
    ("a.c\n", "abc\n", False),
])
def test_shown_output_is_compared_line_by_line(shown, actual, matches):
    assert output_matches(shown, actual) == matches
