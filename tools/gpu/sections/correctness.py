"""Every case against torch in float64, and one table of more than 2^31 elements."""

import torch

import cases
from case_checks import run_case
from neuroshard import cuda

LARGE = "more_than_2^31_elements"


def run(context):
    machine, names = context.machine, set(context.catalogue("cases"))
    for case in [case for case in cases.all_cases() if case.name in names]:
        context.attempt(case.name, lambda case=case: passed(run_case(
            case, context.artifacts / "cases" / case.name, machine.place, machine.stream(),
            cases.generator_of)))
    if not context.dry:
        context.attempt(LARGE, lambda: passed(check_large(context)))


def passed(_nothing):
    return {"passed": True}


def check_large(context):
    """One SGD step on a table whose last rows lie beyond 2^31 elements."""
    machine = context.machine
    artifact = context.artifacts / "large"
    rows, dim, bags = cases.LARGE_ROWS, cases.LARGE_DIM, 1000
    weights = torch.randn((rows, dim), device=machine.place)
    ids = torch.randint(rows - 5000, rows, (bags * 3,), device=machine.place)
    ids[::2] = torch.randint(0, rows, (bags * 3 // 2,), device=machine.place)
    out = torch.empty((bags, dim), device=machine.place)
    with cuda.Device(artifact, seed=None, memory=[(weights, None, None)]) as device:
        parts = cuda.parts_of([cuda.part(0, ids, None, out, dim, bags=bags, pooling=3)])
        expected = weights[ids].double().view(bags, 3, dim).sum(1)
        touched = ids.unique()
        before = weights[touched].double()
        device.forward(parts, cuda.TRAINING, machine.stream())
        gradient = torch.randn((bags, dim), device=machine.place)
        device.set_step(0.5, 1, machine.stream())
        device.backward([(gradient, dim)], machine.stream())
        device.check(machine.stream())
    assert (out.double() - expected).abs().max() < 1e-5, "forward beyond 2^31 elements"
    dense = torch.zeros((len(touched), dim), dtype=torch.float64, device=machine.place)
    dense.index_add_(0, torch.searchsorted(touched, ids),
                     gradient.double().repeat_interleave(3, 0))
    error = (weights[touched].double() - (before - 0.5 * dense)).abs().max()
    assert error < 1e-5, f"update beyond 2^31 elements: off by {error}"
