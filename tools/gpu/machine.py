"""The GPU that a run is on, or the emulator that stands in for it in a dry run.

A dry run goes through the same code with tensors on the CPU and a clock of its own; what it
"measures" is thrown away by the report."""

import contextlib
import datetime
import platform
import subprocess
import time

import torch

from neuroshard import cuda

DRY_FREE_BYTES = 1 << 28
# Clock cycles that the GPU waits in front of what is timed, about 50 us: the host puts the work
# on the stream meanwhile, so that its time is not measured.
HEAD_START_CYCLES = 100_000


class Machine:
    """Where tensors live, on which stream kernels run, and how work is captured and timed."""

    def __init__(self, dry):
        self.dry = dry
        self.place = "cpu" if dry else "cuda"
        self.broken = ""  # set by faults.py
        self.side = None  # the stream that graphs are captured on

    def stream(self):
        return None if self.dry else torch.cuda.current_stream().cuda_stream

    def synchronize(self):
        if not self.dry:
            torch.cuda.synchronize()

    def free_bytes(self):
        if self.dry:
            return DRY_FREE_BYTES
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]

    def spare_bytes(self):
        """Bytes left free for contexts, libraries and captured graphs."""
        return 0 if self.dry else 3 << 30

    def require(self):
        """Raises cuda.CudaError unless there is a GPU that both the runtime and torch see."""
        if reason := cuda.available():
            raise cuda.NoDriver(reason)
        if not self.dry and not torch.cuda.is_available():
            raise cuda.NoDriver(f"torch {torch.__version__} sees no GPU")

    def why_broken(self):
        """Why the GPU no longer works in this process; "" if it does."""
        if self.dry:
            return self.broken
        try:
            torch.cuda.synchronize()
            if torch.ones(8, device=self.place).sum().item() != 8:
                return "eight ones do not add up to 8"
        except torch.OutOfMemoryError:
            return ""
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:500]
        return ""

    # Memory

    def reset_peak(self):
        """Bytes that torch has, from which its peak is counted."""
        if self.dry:
            return 0
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()

    def peak_bytes(self):
        return 0 if self.dry else torch.cuda.max_memory_allocated()

    # Time

    def capture(self, runs, warm_up=2):
        """One CUDA graph with all `runs` after each other; gives a function that replays it.
        warm_up: how often they run before; 0 if that cannot be repeated."""
        if self.dry:
            for _ in range(min(1, warm_up)):
                for run in runs:
                    run()
            return lambda: [run() for run in runs]
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # what the runtime allocates does not come from torch
        self.side = self.side or torch.cuda.Stream()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.side):
            for _ in range(warm_up):
                for run in runs:
                    run()
            torch.cuda.synchronize()
            # relaxed: a library that allocates or copies while a graph is captured may do so.
            graph.capture_begin(capture_error_mode="relaxed")
            try:
                for run in runs:
                    run()
            except BaseException:
                with contextlib.suppress(Exception):
                    graph.capture_end()
                raise
            graph.capture_end()
        torch.cuda.synchronize()
        return graph.replay

    def time_ms(self, call, repeats):
        """Milliseconds of `repeats` calls on the stream."""
        if self.dry:
            begin = time.perf_counter()
            for _ in range(repeats):
                call()
            return 1e3 * (time.perf_counter() - begin)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(HEAD_START_CYCLES)
        begin.record()
        for _ in range(repeats):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    # Facts

    def facts(self):
        """The facts about the GPU that results are stored with."""
        facts = {"measured": not self.dry, "torch": torch.__version__,
                 "python": platform.python_version(), "kernel": platform.release(), "date": now()}
        if self.dry:
            return {**facts, "device": "emulator on a CPU", "uuid": "", "driver": ""}
        properties = torch.cuda.get_device_properties(0)
        return {**facts, "device": properties.name, "uuid": str(properties.uuid),
                "driver": query("driver_version"), "cuda": torch.version.cuda,
                "memory_bytes": properties.total_memory,
                "multiprocessors": properties.multi_processor_count,
                "l2_bytes": getattr(properties, "L2_cache_size", 0)}

    def clocks(self):
        """What the GPU runs at now, in nvidia-smi's words and units."""
        names = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw",
                 "clocks_event_reasons.active")
        if self.dry:
            return {"date": now()}
        found = [one.strip() for one in query(",".join(names)).split(",")]
        return {"date": now(), **dict(zip(names, found))}


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def query(names):
    """One line of nvidia-smi; "unknown" without it."""
    try:
        return subprocess.run(["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True,
                              timeout=20).stdout.splitlines()[0].strip()
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"
