"""A device of a compiled model on the emulator, the expected contents of its tables, and
comparisons."""

import json

import numpy
import torch

import gpu_reference as reference
from neuroshard import cuda
from support import optimizers
from support.model import DTYPES


def assert_same(actual, expected, what):
    """The same bits, but for the sign of zero and the kind of NaN."""
    actual, expected = actual.double().numpy(), expected.double().numpy()
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    bad = ~((actual == expected) | (numpy.isnan(actual) & numpy.isnan(expected)))
    if bad.any():
        at = tuple(int(i) for i in numpy.argwhere(bad)[0])
        raise AssertionError(f"{what}: {bad.sum()} of {bad.size} values differ, first at {at}: "
                             f"got {actual[at]!r}, expected {expected[at]!r}")


def assert_within(actual, bounded, what):
    """Each value is in the range that is left after rounding to its type."""
    least, greatest = bounded.range_in(actual.dtype)
    bad = ~((actual >= least) & (actual <= greatest) | actual.isnan() & least.isnan())
    if bad.any():
        at = tuple(bad.nonzero()[0].tolist())
        raise AssertionError(f"{what}: {int(bad.sum())} of {bad.numel()} values differ, first at "
                             f"{at}: got {actual[at].item()!r}, expected {least[at].item()!r} to "
                             f"{greatest[at].item()!r}")


def program_of(artifact, rank):
    """The contents of a device's .gpu.json."""
    manifest = json.loads((artifact / "manifest.json").read_text())
    library = manifest["programs"][manifest["bindings"][rank]["program"]]["library"]
    return json.loads((artifact / library.replace(".so", ".gpu.json")).read_text())


class OpenDevice:
    """One device of a compiled model. `tables`: name -> (weights, states) of whole tables, with
    which it begins; `expected`: (weights, states) that each slot must hold now."""

    def __init__(self, artifact, model, tables, rank=0, output="f32", splits_rows=()):
        self.model, self.output = model, DTYPES[output]
        self.splits_rows = splits_rows
        self.device = cuda.Device(artifact, rank, seed=None)
        program = program_of(artifact, rank)
        self.chunk = reference.chunk_size() if "nsg_partials" in program["kernels"] else None
        self.lookups, self.slots = self.device.lookups, self.device.slots
        self.program_slots = program["slots"]
        manifest = json.loads((artifact / "manifest.json").read_text())
        self.is_one_of_many = len(manifest["bindings"]) > 1
        self.expected = []
        for number, slot in enumerate(self.slots):
            weights, states = tables[slot.table.decode()]
            rows, columns = slice(slot.row_begin, slot.row_end), slice(slot.col_begin, slot.col_end)
            weights = weights[rows, columns].contiguous()
            self.device.write_weights(number, weights, 0, slot.rows)
            own = []
            for index, state in enumerate(states):
                part = (state[rows] if slot.is_row_state(index) else state[rows, columns]).contiguous()
                self.device.write_state(number, index, part, 0, slot.rows)
                own.append(part.numpy())
            self.expected.append((weights, own))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.device.close()

    def table_of(self, slot):
        return self.model.table(self.slots[slot].table.decode())

    def is_trained(self, slot):
        return bool(self.slots[slot].trainable)

    def trained_slots(self):
        """The slots that are updated, in the order in which their positions are sorted: those with
        the same bodies of kernels side by side."""
        bodies = ("partial", "update", "reduce", "apply", "sums_update")
        return sorted((slot for slot in range(len(self.slots)) if self.is_trained(slot)),
                      key=lambda slot: [self.program_slots[slot][f"{body}_variant"]
                                        for body in bodies])

    def read(self, slot):
        facts = self.slots[slot]
        weights = torch.empty((facts.rows, facts.columns), dtype=self.expected[slot][0].dtype)
        self.device.read_weights(slot, weights, 0, facts.rows)
        states = []
        for index in range(facts.num_states):
            state = torch.empty((facts.rows, 1 if facts.is_row_state(index) else facts.columns))
            self.device.read_state(slot, index, state, 0, facts.rows)
            states.append(state)
        return weights, states


def random_tables(model, generator, integers):
    """Whole tables with random values; integers are exact in every type."""
    tables = {}
    for table in model.tables:
        shape = (table.rows, table.dim)
        weights = (torch.randint(-3, 4, shape, generator=generator) if integers
                   else torch.randn(shape, generator=generator)).to(DTYPES[table.dtype])
        states = optimizers.new_states(table.optimizer, table.rows, table.dim)
        tables[table.name] = weights, states
    return tables


def check_unchanged(opened):
    """No table or state has changed."""
    for slot in range(len(opened.slots)):
        weights, states = opened.read(slot)
        what = f"slot {slot}, {opened.table_of(slot)}"
        assert_same(weights, opened.expected[slot][0], f"weights of {what}")
        for index, state in enumerate(states):
            assert_same(state, torch.from_numpy(opened.expected[slot][1][index]),
                        f"state {index} of {what}")
