"""Shows mkdocstrings the Python package as it is in the checkout, together with the types of its compiled module,
which only a build has: NEUROSHARD_BUILD_DIR, or build/release. Without a build the pages say so."""

import os
import re
import tempfile
from pathlib import Path

from mkdocs.plugins import event_priority

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("NEUROSHARD_BUILD_DIR", ROOT / "build/release"))
STUB = BUILD / "python/neuroshard/_planner.pyi"
COMPILED = re.compile(r"^::: neuroshard\._planner\.(\w+)$", re.MULTILINE)
# Kept until the site is built.
_folder = tempfile.TemporaryDirectory(prefix="neuroshard-docs-")


@event_priority(100)
def on_config(config):
    """Before mkdocstrings reads its settings."""
    package = Path(_folder.name) / "neuroshard"
    if not package.exists():
        package.mkdir()
        for one in (ROOT / "python/neuroshard").iterdir():
            (package / one.name).symlink_to(one)
        if STUB.exists():
            (package / STUB.name).symlink_to(STUB)
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [_folder.name]


def on_page_markdown(markdown, **_):
    if STUB.exists():
        return markdown
    return COMPILED.sub(r"`\1` is compiled: `./dev build`, and then `./dev docs`, shows it here.", markdown)
