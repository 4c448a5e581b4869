"""Training steps of all devices of a plan one after the other, with the exchange of norms between
them simulated."""

import contextlib

import torch

import gpu_models as models
import gpu_reference as reference
from gpu_device import OpenDevice, assert_within, random_tables
from gpu_memory import Memory
from gpu_steps import Step, norms_of
from neuroshard import cuda


def exchange_norms(plan, devices, steps, learning_rate, step_number):
    """Plays the column owners: sums the norms of their shards in column order. Returns, for
    each device, what the norms of its two-phase slots must be: a list for the rows of each."""
    groups, expected = {}, [{} for _ in devices]
    for rank, opened in enumerate(devices):
        for number, slot in enumerate(opened.slots):
            if slot.two_phase:
                groups.setdefault((slot.table, slot.row_begin), []).append(
                    (slot.col_begin, rank, number))
    assert bool(groups) == (plan.semantics == "exact")
    gradients = [step.slot_gradients() for step in steps]
    for owners in groups.values():
        total, views = None, []
        for _, rank, number in sorted(owners):
            gradient, touched = gradients[rank][number]
            optimizer = devices[rank].table_of(number).optimizer
            weights, states = devices[rank].expected[number]
            own = reference.norms_of_rows(
                optimizer, weights[torch.from_numpy(touched)], [s[touched] for s in states],
                gradient[touched], reference.step_size(optimizer, learning_rate, step_number))
            views.append(norms_of(devices[rank], number))
            assert views[-1].shape[1] == len(own)
            for view, norm in zip(views[-1].T, own):
                assert_within(torch.from_numpy(view.copy()), norm, f"norms of a shard, {optimizer}")
            total = own if total is None else [one + other for one, other in zip(total, own)]
        sums = views[0].copy()
        for view in views[1:]:
            sums += view
        for (_, rank, number), view in zip(sorted(owners), views):
            view[:] = sums
            expected[rank][number] = total
    return expected


def train_shards(model, plan, artifact, kind, generator, integers):
    """Two steps; raises an AssertionError if results differ from the reference."""
    splits = {table.name for table in model.tables if plan.splits_rows(table.name)}
    tables = random_tables(model, generator, integers)
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(OpenDevice(artifact, model, tables, rank,
                                                  splits_rows=splits))
                   for rank in range(plan.devices)]
        for number in (1, 2):
            memory = stack.enter_context(Memory())
            batches = models.make_batches(model, kind, generator, integers)
            steps = [Step(opened, batches, memory) for opened in devices]
            for opened, step in zip(devices, steps):
                step.make_gradients(generator, integers)
                step.forward(cuda.TRAINING)
                step.check_results()
                opened.device.set_step(0.125, number)
                step.backward()
                step.check_weight_gradients()
            norms = exchange_norms(plan, devices, steps, 0.125, number)
            for opened, step, own in zip(devices, steps, norms):
                if opened.device.info.two_phase:
                    opened.device.backward_apply()
                opened.device.check()
                step.check_update(0.125, number, own)
