"""One rank of the tests of checkpoints: runs the cases it is told and writes what each gave.

usage: checkpoint_worker.py FOLDER CASE[:KEY=VALUE...]...

FOLDER/results-<ranks>-<rank>.json gets, by case, "" or what went wrong."""

import json
import os
import sys
import time
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
sys.path[:0] = [str(BUILD / "python"), str(Path(__file__).parent)]
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import checkpoint_cases  # noqa: E402


def main(folder, *names):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    results = {}
    for name in names:
        case, *pairs = name.split(":")
        begin = time.time()
        options = dict(pair.split("=") for pair in pairs)
        try:
            getattr(checkpoint_cases, case)(Path(folder), **options)
            results[name] = ""
        except Exception:
            results[name] = traceback.format_exc()
        if rank == 0 and os.environ.get("TIMES"):
            print(name, round(time.time() - begin, 2), flush=True)
        (Path(folder) / f"results-{ranks}-{rank}.json").write_text(json.dumps(results))
        if any(checkpoint_cases.everywhere(results[name])):
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
