"""Makes the Python tests find the build: what `./dev check` says, else build/release.

Adds --name-regex, since pytest's own -k takes no regular expressions. Says which tests belong
together when pytest-xdist gives the tests to several processes."""

import os
import re
import signal
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("NEUROSHARD_BUILD_DIR", str(ROOT / "build" / "release"))
_tools = os.path.join(os.environ["NEUROSHARD_BUILD_DIR"], "bin")
if _tools not in os.environ["PATH"].split(os.pathsep):
    os.environ["PATH"] = _tools + os.pathsep + os.environ["PATH"]

# Files of shards in tier "ssd".
os.environ.setdefault("NEUROSHARD_TIER_DIRECTORY", tempfile.gettempdir())

# Shells have what they start in the background ignore SIGINT, and so what that starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests of a module run in one process, so that its fixtures are made once. Of these modules
# the tests of one number of ranks, or of one page, share no fixture with the others.
INDEPENDENT = re.compile(
    r".*/test_(?:distributed|distributed_gpu|torchrec)\.py::test_ranks\[\d+-"
    r"|.*/test_command_blocks\.py::test_command_block\[[^:\]]*:")


def unit_of_work(nodeid):
    """What the tests that have to run in one process have in common."""
    together = INDEPENDENT.match(nodeid)
    return together[0] if together else nodeid.split("::")[0]


def pytest_addoption(parser):
    parser.addoption("--name-regex", default="",
                     help="run the tests whose id matches this regular expression")


def pytest_collection_modifyitems(config, items):
    pattern = re.compile(config.getoption("--name-regex"))
    dropped = [item for item in items if not pattern.search(item.nodeid)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if pattern.search(item.nodeid)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Gives the units of work to the processes in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return unit_of_work(nodeid)

    config.option.loadscopereorder = False
    return Units(config, log)
