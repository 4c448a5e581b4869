"""One rank of the tests of shard_model: as distributed_worker.py, with cases of this folder, too."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "distributed")]

import distributed_worker  # noqa: E402

if __name__ == "__main__":
    distributed_worker.main(*sys.argv[1:])
