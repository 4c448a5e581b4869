"""Python in other processes."""

import os
import sys


def environment(**changes):
    """Of a process that finds the modules that this one finds, with these variables set."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **changes}
