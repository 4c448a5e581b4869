"""Runs the steps of a case on the devices of its plan, all on one GPU, and compares every
result, table and state with torch in float64.

Each lookup on each shard is held against an oracle of its own, which sees the shard as a
table: what the exchange between devices adds is not the GPU's part."""

from dataclasses import dataclass

import torch

from cases import make_batch
from neuroshard import cuda
from support import oracle, optimizers
from support.batch import Jagged, random_values
from support.model import DTYPES, KERNEL_ID_TYPES, Lookup

SLACK = 3  # rows behind each output, which must stay as they are
UNTOUCHED = -7.0


@dataclass
class Work:
    """One part: its input for the oracle, and its arrays on the GPU."""

    slot: int
    lookup: Lookup
    jagged: Jagged  # one feature; ids count from the shard's first row
    arrays: tuple  # ids, offsets, sample weights
    out: torch.Tensor  # [items + SLACK, stride]
    items: int
    gradient: torch.Tensor | None = None
    weight_gradient: torch.Tensor | None = None


def padded(columns, dtype):
    """Columns of a row padded to 16 bytes."""
    step = 16 // DTYPES[dtype].itemsize
    return -(-columns // step) * step


class OpenDevice:
    """One device of the plan, with the weights and states that its slots began with."""

    def __init__(self, case, artifact, rank, place):
        self.case, self.place = case, place
        self.device = cuda.Device(artifact, rank, seed=None)
        self.tables = {table.name: table for table in case.model.tables}
        self.works = []

    def table_of(self, slot):
        return self.tables[self.device.slots[slot].table.decode()]

    def weights_like(self, slot):
        facts = self.device.slots[slot]
        return torch.empty((facts.rows, facts.columns), dtype=DTYPES[self.table_of(slot).dtype])

    def fill(self, full):
        """Writes the shards of `full`: table -> (weights, states)."""
        for number, slot in enumerate(self.device.slots):
            weights, states = full[slot.table.decode()]
            rows, cols = slice(slot.row_begin, slot.row_end), slice(slot.col_begin, slot.col_end)
            self.device.write_weights(number, weights[rows, cols].contiguous(), 0, slot.rows)
            for index, state in enumerate(states[:slot.num_states]):
                part = state[rows] if slot.is_row_state(index) else state[rows, cols]
                self.device.write_state(number, index, part.contiguous(), 0, slot.rows)

    def read(self, number):
        """(weights, states) of a slot."""
        slot, weights = self.device.slots[number], self.weights_like(number)
        self.device.read_weights(number, weights, 0, slot.rows)
        states = []
        for index in range(slot.num_states):
            state = torch.empty((slot.rows, 1 if slot.is_row_state(index) else slot.columns))
            self.device.read_state(number, index, state, 0, slot.rows)
            states.append(state)
        return weights, states

    # A step

    def make_works(self, batches):
        """The parts of a step: the ids of each lookup that are in its shard."""
        self.works = []
        for number, facts in enumerate(self.device.lookups):
            input_ = self.case.model.inputs[facts.exchange]
            feature = input_.features[facts.feature_index]
            padding = self.padding_of(input_, number)
            slot = self.device.slots[facts.slot]
            jagged = shard_ids(batches[facts.exchange], facts.feature_index, slot,
                               padding if facts.pooled else None)
            pooling = ("mean" if facts.mean else "sum") if facts.pooled else "unpooled"
            lookup = Lookup(feature, slot.table.decode(), pooling, bool(facts.weighted), None,
                            cuda.ELEMENT_TYPES[facts.output_type])
            self.works.append(self.place_work(facts, lookup, jagged, slot))

    def padding_of(self, input_, number):
        """padding_idx of a lookup: what only the manifest and the model know."""
        facts = self.device.lookups[number]
        table = self.device.slots[facts.slot].table.decode()
        fitting = [lookup for lookup in input_.lookups
                   if lookup.feature == input_.features[facts.feature_index]
                   and lookup.table == table and lookup.weighted == bool(facts.weighted)]
        return next((lookup.padding_idx for lookup in fitting), None)

    def place_work(self, bound, lookup, jagged, facts):
        items = jagged.batch if lookup.pooling != "unpooled" else len(jagged.ids)
        # An odd number of 16-byte pieces more than a row, so that a wrong stride shows.
        stride = padded(facts.columns, lookup.result) + 3 * padded(1, lookup.result)
        out = torch.full((items + SLACK, stride), UNTOUCHED, dtype=DTYPES[lookup.result])
        ids = (jagged.ids + facts.row_begin).to(KERNEL_ID_TYPES[bound.id_bytes])
        arrays = tuple(None if array is None else array.to(self.place)
                       for array in (ids, jagged.offsets, jagged.weights))
        return Work(bound.slot, lookup, jagged, arrays, out.to(self.place), items)

    def parts(self, fixed, training):
        """`fixed`: without offsets, where all bags are of one length."""
        made = []
        for number, work in enumerate(self.works):
            ids, offsets, weights = work.arrays
            lengths = work.jagged.offsets.diff()
            pooling = int(lengths[0]) if len(lengths) else 0
            # Gradients of sample weights need offsets.
            same = (fixed and bool((lengths == pooling).all())
                    and not (training and work.weight_gradient is not None))
            pooled = work.lookup.pooling != "unpooled"
            made.append(cuda.part(
                number, ids, offsets if pooled and not same else None, work.out,
                work.out.shape[1], bags=work.jagged.batch, pooling=pooling,
                sample_weights=weights if work.lookup.weighted else None))
        return cuda.parts_of(made)

    def forward(self, training, fixed, stream):
        self.device.forward(self.parts(fixed, training), training, stream)
        self.device.check(stream)

    def make_gradients(self, generator):
        for work in self.works:
            columns = self.device.slots[work.slot].columns
            # Rows of whole 16 bytes stay aligned; others begin anywhere.
            stride = columns + (5 if columns % 4 else 8)
            values = random_values((work.items, stride), generator, False)
            work.gradient = values.to(self.place)
            # Programs compute it for the tables that they train.
            if work.lookup.weighted and self.device.slots[work.slot].trainable:
                work.weight_gradient = torch.full((len(work.jagged.ids),), UNTOUCHED,
                                                  device=self.place)

    def backward(self, stream):
        self.device.backward([(work.gradient, work.gradient.stride(0), work.weight_gradient)
                              for work in self.works], stream)

    # Comparisons

    def check_forward(self, before):
        for number, work in enumerate(self.works):
            what = f"{self.case.name} lookup {number} {work.lookup}"
            columns = self.device.slots[work.slot].columns
            out = work.out.cpu()
            expected = oracle.forward(before[work.slot][0], work.jagged, 0, work.lookup)
            expected.error *= long_bags(work.jagged)
            oracle.assert_within(out[:work.items, :columns].contiguous(), expected, what)
            assert (out[work.items:] == UNTOUCHED).all(), f"{what}: written behind the last item"
            assert (out[:, padded(columns, work.lookup.result):] == UNTOUCHED).all(), \
                f"{what}: written beside the rows"

    def check_weight_gradients(self, before):
        for number, work in enumerate(self.works):
            if work.weight_gradient is None:
                continue
            columns = self.device.slots[work.slot].columns
            expected = oracle.sample_weight_gradient(
                before[work.slot][0], work.jagged, 0, work.lookup,
                work.gradient.cpu()[:, :columns])
            oracle.assert_within(work.weight_gradient.cpu(), expected,
                                 f"{self.case.name} gradient of the weights of lookup {number}")

    def gradient_of(self, slot, weights):
        """The summed gradient of a slot, as a table of its own."""
        columns = self.device.slots[slot].columns
        return oracle.table_gradient(weights, [
            (work.jagged, 0, work.lookup, work.gradient.cpu()[:, :columns])
            for work in self.works if work.slot == slot])


def long_bags(jagged):
    """The oracle allows 4 ulp. In a bag of very many ids, equal ones above all, the roundings
    may all go one way: n / 2 ulp for n ids."""
    longest = int(jagged.offsets.diff().max()) if jagged.batch else 0
    return max(1.0, longest / 8)


def shard_ids(jagged, feature, slot, padding):
    """The ids of one feature that lie in a slot's rows, counted from its first row."""
    ids, offsets, weights = jagged.feature(feature)
    keep = (ids >= slot.row_begin) & (ids < slot.row_end)
    if padding is not None:
        keep &= ids != padding
    before = torch.cat([torch.zeros(1, dtype=torch.int64), keep.long().cumsum(0)])
    return Jagged(ids[keep] - slot.row_begin, before[offsets],
                  None if weights is None else weights[keep], 1)


class Run:
    """All devices of a case."""

    def __init__(self, case, artifact, place, stream=None):
        self.case, self.place, self.stream = case, place, stream
        self.devices = [OpenDevice(case, artifact, rank, place)
                        for rank in range(case.plan.devices)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for opened in self.devices:
            opened.device.close()

    def fill(self, generator):
        full = {}
        for table in self.case.model.tables:
            states = optimizers.new_states(table.optimizer, table.rows, table.dim)
            full[table.name] = (random_values((table.rows, table.dim), generator, False,
                                              DTYPES[table.dtype]), states)
        for opened in self.devices:
            opened.fill(full)

    def step(self, kind, generator, number, learning_rate=0.125):
        """One training step, compared; number counts from 1."""
        batches = [make_batch(self.case.model, input_, kind, generator)
                   for input_ in self.case.model.inputs]
        before = [[opened.read(slot) for slot in range(len(opened.device.slots))]
                  for opened in self.devices]
        fixed = kind.startswith("fixed")
        for opened, tables in zip(self.devices, before):
            opened.make_works(batches)
            opened.make_gradients(generator)
            opened.forward(cuda.INFERENCE, fixed, self.stream)
            opened.check_forward(tables)
            opened.forward(cuda.TRAINING, fixed, self.stream)
            opened.device.set_step(learning_rate, number, self.stream)
            opened.backward(self.stream)
            opened.check_weight_gradients(tables)
        self.exchange_norms()
        self.check_update(before, learning_rate, number)

    # Two-phase optimizers over column shards

    def column_owners(self):
        """The (device, slot) pairs that share state: two-phase slots of the same rows of a
        table, by column; any other slot by itself."""
        groups = {}
        for rank, opened in enumerate(self.devices):
            for number, slot in enumerate(opened.device.slots):
                key = ((slot.table, slot.row_begin) if slot.two_phase else (rank, number))
                groups.setdefault(key, []).append((slot.col_begin, rank, number))
        return [[(rank, number) for _, rank, number in sorted(group)]
                for group in groups.values()]

    def exchange_norms(self):
        """Sums the norms over the owners of the columns, in the order of the columns."""
        for group in self.column_owners():
            views = []
            for rank, number in group:
                opened = self.devices[rank]
                if opened.device.slots[number].two_phase:
                    views.append(self.norms_of(opened, number))
            if views:
                total = views[0].clone()
                for view in views[1:]:
                    total += view
                for view in views:
                    view.copy_(total)
        for opened in self.devices:
            if opened.device.info.two_phase:
                opened.device.backward_apply(self.stream)

    def norms_of(self, opened, number):
        norms = opened.device.norms(number)
        begin, end = tensor_at(norms.run_range, 2, "i4", self.place).tolist()
        return tensor_at(norms.norms, (end - begin) * norms.per_row, "f4", self.place)

    def check_update(self, before, learning_rate, number):
        for group in self.column_owners():
            table = self.devices[group[0][0]].table_of(group[0][1])
            old = [before[rank][slot] for rank, slot in group]
            gradients = [self.devices[rank].gradient_of(slot, before[rank][slot][0])
                         for rank, slot in group]
            # Bags repeat an id here, so that equal gradients add up: their roundings may all go
            # one way, n / 2 ulp for n of them where the oracle allows n / 8.
            joined = oracle.TableGradient(torch.cat([g.value for g in gradients], 1),
                                          torch.cat([g.magnitude for g in gradients], 1),
                                          4 * gradients[0].terms)
            weights = torch.cat([weights for weights, _ in old], 1)
            expected = (unchanged(weights, old[0][1]) if table.optimizer is None else
                        optimizers.step(table.optimizer, weights, old[0][1], joined,
                                        learning_rate, number))
            self.compare(group, table, expected, number)

    def compare(self, group, table, expected, number):
        begin = 0
        for rank, slot in group:
            weights, states = self.devices[rank].read(slot)
            end = begin + weights.shape[1]
            got = [weights, *states]
            for part, (value, bounded) in enumerate(zip(got, expected)):
                if part == 0:
                    bounded = oracle.Bounded(bounded.value[:, begin:end],
                                             bounded.error[:, begin:end])
                oracle.assert_within(value, bounded, f"{self.case.name} device {rank} {table} "
                                     f"array {part} after step {number}")
            begin = end


def unchanged(weights, states):
    return [oracle.Bounded(v.double(), torch.zeros(v.shape).double()) for v in (weights, *states)]


def tensor_at(address, count, kind, place):
    """A tensor over memory of the library."""
    dtype = {"i4": torch.int32, "f4": torch.float32}[kind]
    if not count:
        return torch.empty(0, dtype=dtype, device=place)
    if place == "cpu":
        import ctypes
        return torch.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address),
                                dtype=dtype)
    interface = {"shape": (count,), "typestr": f"<{kind}", "data": (address, False), "version": 3}
    holder = type("Memory", (), {"__cuda_array_interface__": interface})()
    return torch.as_tensor(holder, device=place)


def run_case(case, artifact, place, stream, generator_of):
    """All kinds of batches of a case, each a training step; raises AssertionError."""
    with Run(case, artifact, place, stream) as run:
        run.fill(generator_of(case, "weights"))
        for number, kind in enumerate(case.kinds, start=1):
            run.step(kind, generator_of(case, kind), number)
