"""Makes the Python tests find the build: what `./dev check` says, else build/release."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("NEUROSHARD_BUILD_DIR", str(ROOT / "build" / "release"))
_tools = os.path.join(os.environ["NEUROSHARD_BUILD_DIR"], "bin")
if _tools not in os.environ["PATH"].split(os.pathsep):
    os.environ["PATH"] = _tools + os.pathsep + os.environ["PATH"]
