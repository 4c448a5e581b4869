"""Importing this makes the packages neuroshard and test/python/support importable; a package
neuroshard that was there before (a build's, with the planner) stays the first choice."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "test" / "python", ROOT / "python"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
