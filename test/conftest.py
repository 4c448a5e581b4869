"""Makes the Python tests find the build: what `./dev check` says, else build/release.

Adds --name-regex, since pytest's own -k takes no regular expressions."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("NEUROSHARD_BUILD_DIR", str(ROOT / "build" / "release"))
_tools = os.path.join(os.environ["NEUROSHARD_BUILD_DIR"], "bin")
if _tools not in os.environ["PATH"].split(os.pathsep):
    os.environ["PATH"] = _tools + os.pathsep + os.environ["PATH"]


def pytest_addoption(parser):
    parser.addoption("--name-regex", default="",
                     help="run the tests whose id matches this regular expression")


def pytest_collection_modifyitems(config, items):
    pattern = re.compile(config.getoption("--name-regex"))
    dropped = [item for item in items if not pattern.search(item.nodeid)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if pattern.search(item.nodeid)]
