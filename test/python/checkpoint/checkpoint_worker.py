"""One rank of the tests of checkpoints: runs the cases it is told and writes what each gave.

usage: forked_ranks.py N LOGS MODULES checkpoint_worker.py FOLDER CASE[:KEY=VALUE...]...
       checkpoint_worker.py --fork N FOLDER CASE[:KEY=VALUE...]...

FOLDER/results-<ranks>-<rank>.json gets, by case, "" or what went wrong. --fork makes the ranks
itself, for each case anew, and lets those go on whose peers are killed; forked_ranks.py ends
them."""

import json
import os
import sys
import time
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
HERE = Path(__file__).parent
sys.path[:0] = [str(BUILD / "python"), str(HERE), str(HERE.parent)]
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import checkpoint_cases  # noqa: E402
from support.ports import port_of, reserve_port  # noqa: E402


def main(folder, *names):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=300))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    results = {}
    for name in names:
        case, *pairs = name.split(":")
        options = dict(pair.split("=") for pair in pairs)
        cpu = time.process_time()
        try:
            getattr(checkpoint_cases, case)(Path(folder), **options)
            results[name] = ""
        except Exception:
            results[name] = traceback.format_exc()
        print(f"{name}: {time.process_time() - cpu:.2f} s of CPU", flush=True)
        (Path(folder) / f"results-{ranks}-{rank}.json").write_text(json.dumps(results))
        if any(checkpoint_cases.everywhere(results[name])):
            break
    dist.destroy_process_group()


def fork(ranks, folder, *names):
    for case in names:
        with reserve_port() as place:
            children = []
            for rank in range(int(ranks)):
                child = os.fork()
                if not child:
                    os.environ.update(RANK=str(rank), WORLD_SIZE=ranks, MASTER_ADDR="127.0.0.1",
                                      MASTER_PORT=port_of(place))
                    main(folder, case)
                    os._exit(0)
                children.append(child)
            for child in children:
                os.waitpid(child, 0)


if __name__ == "__main__":
    fork(*sys.argv[2:]) if sys.argv[1] == "--fork" else main(*sys.argv[1:])
