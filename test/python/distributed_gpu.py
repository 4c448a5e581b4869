"""Cases: the engine for GPUs, on the emulator with Gloo. Most are those of the engine for CPUs."""

import importlib

import distributed_context


class GpuContext(distributed_context.Context):
    """Makes modules of the engine for GPUs."""

    def make(self, plan, problem, learning_rate=0.125, **options):
        return super().make(plan, problem, learning_rate,
                            **{"engine": "cuda", "device": "cpu", **options})


def on_gpus(context):
    """The same case, with the same random numbers as that of the engine for CPUs."""
    context.__class__ = GpuContext
    return context


def case_same(context, case, **options):
    """A case of another module: its name is MODULE/FUNCTION."""
    module, function = case.split("/")
    work = getattr(importlib.import_module(f"distributed_{module}"), f"case_{function}")
    work(on_gpus(context), **options)
