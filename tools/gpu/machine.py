"""The GPU that a run is on, or the emulator that stands in for it in a dry run."""

import datetime
import platform
import subprocess

import torch

from neuroshard import cuda


class Machine:
    """Where tensors live and on which stream kernels run."""

    def __init__(self, dry):
        self.dry = dry
        self.place = "cpu" if dry else "cuda"

    def stream(self):
        return None if self.dry else torch.cuda.current_stream().cuda_stream

    def synchronize(self):
        if not self.dry:
            torch.cuda.synchronize()

    def free_bytes(self):
        if self.dry:
            return 1 << 28
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]

    def require(self):
        """Raises cuda.CudaError unless there is a GPU that both the runtime and torch see."""
        if reason := cuda.available():
            raise cuda.NoDriver(reason)
        if not self.dry and not torch.cuda.is_available():
            raise cuda.NoDriver(f"torch {torch.__version__} sees no GPU")

    def facts(self):
        """Facts that results are worth nothing without."""
        facts = {"measured": not self.dry, "torch": torch.__version__,
                 "python": platform.python_version(),
                 "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
        if self.dry:
            return {**facts, "device": "emulator on a CPU", "uuid": "", "driver": ""}
        properties = torch.cuda.get_device_properties(0)
        return {**facts, "device": properties.name, "uuid": str(properties.uuid),
                "driver": driver_version(), "cuda": torch.version.cuda,
                "memory_bytes": properties.total_memory,
                "multiprocessors": properties.multi_processor_count,
                "l2_bytes": getattr(properties, "L2_cache_size", 0)}


def driver_version():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True,
                              timeout=30).stdout.splitlines()[0].strip()
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"
