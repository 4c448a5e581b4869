"""One rank of the tests of neuroshard.distributed: runs cases, says how each ended.

usage: forked_ranks.py N LOGS MODULES distributed_worker.py FOLDER LIMIT_S

FOLDER/cases.json lists cases as MODULE.FUNCTION[:KEY=VALUE...], functions case_FUNCTION of
distributed_MODULE.py. FOLDER/results-RANK gets a line [case, "" or what went wrong] each."""

import faulthandler
import importlib
import json
import os
import sys
import time
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(Path(os.environ["NEUROSHARD_BUILD_DIR"], "python")), str(HERE),
                str(HERE.parent)]
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from distributed_context import Context  # noqa: E402

OTHERS_TAKE = timedelta(seconds=10)


def run(case, context):
    """"" or the text of the error."""
    name, *pairs = case.split(":")
    module, function = name.split(".")
    try:
        work = getattr(importlib.import_module(f"distributed_{module}"), f"case_{function}")
        work(context, **dict(pair.split("=") for pair in pairs))
    except Exception:  # noqa: BLE001, it is the result
        return traceback.format_exc()
    return ""


def meet(number, rank, ranks, wrong):
    """Waits until all ranks have ended a case. A rank on which it went wrong does not wait for
    others that hang because of it: its end ends them."""
    store = dist.PrefixStore("cases", dist.distributed_c10d._get_default_store())
    store.set(f"{number}/{rank}", "ended")
    try:
        store.wait([f"{number}/{peer}" for peer in range(ranks)],
                   OTHERS_TAKE if wrong else timedelta(days=1))
    except RuntimeError:
        print(f"rank {rank} ends: the others did not end the case that failed here", flush=True)
        os._exit(3)


def main(folder, limit_s):
    faulthandler.enable()
    torch.set_num_threads(1)
    print(f"start: {time.process_time():.2f} s of CPU", flush=True)
    dist.init_process_group("gloo", timeout=timedelta(seconds=float(limit_s)))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    cases = json.loads(Path(folder, "cases.json").read_text())
    for number, case in enumerate(cases):
        faulthandler.dump_traceback_later(float(limit_s), exit=True)
        context = Context(Path(folder), case)
        wall, cpu = time.monotonic(), time.process_time()
        text = run(case, context)
        print(f"{case}: {time.monotonic() - wall:.2f} s, {time.process_time() - cpu:.2f} s of CPU",
              flush=True)
        if not text:
            text = context.close()
        with open(Path(folder, f"results-{rank}"), "a", encoding="utf-8") as results:
            results.write(json.dumps([case, text]) + "\n")
        meet(number, rank, ranks, bool(text))
        context.close()
    faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
