"""One compiled model, its tables, and steps of it that are compared with the oracles."""

import torch

from support import batch as batches
from support import oracle, optimizers
from support.host import World
from support.model import DTYPES
from support.reference import Reference


class Session:
    """An open artifact with its reference program and random weights."""

    def __init__(self, artifact, model, plan, threads=1, emulated=False):
        self.model, self.plan, self.emulated = model, plan, emulated
        self.world = World(artifact, threads, emulated)
        self.reference = Reference(artifact, model)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.world.close()

    def column_groups(self, table):
        """Column ranges that keep a row-wise state of their own."""
        if self.plan.semantics == "exact":
            return [(0, table.dim)]
        return sorted({shard.cols for shard in self.plan.shards_of(table.name)})

    def fill(self, generator, integers):
        for table in self.model.tables:
            values = batches.random_values((table.rows, table.dim), generator, integers,
                                           DTYPES[table.dtype])
            self.world.write_table(table.name, values)
            groups = len(self.column_groups(table))
            self.world.write_states(table.name, optimizers.new_states(
                table.optimizer, table.rows, table.dim, groups))

    def tables(self):
        return {t.name: (self.world.read_table(t.name), self.world.read_states(t.name))
                for t in self.model.tables}

    def random_batch(self, size, generator, integers):
        return [batches.random_batch(self.model, input_, size, generator, integers)
                for input_ in self.model.inputs]

    def readers(self, jagged):
        """(jagged, feature number, lookup) of each lookup, in the order of the results."""
        return [(jagged[position], input_.features.index(lookup.feature), lookup)
                for position, input_ in enumerate(self.model.inputs)
                for lookup in input_.lookups]

    def scatter(self, jagged):
        """The local batches of each device."""
        parts = [batches.split(j, self.plan.devices) for j in jagged]
        return [[part[rank] for part in parts] for rank in range(self.plan.devices)]

    def wait_results(self, jagged):
        """Runs start and wait; gives (results over the global batch, contexts)."""
        pending = self.world.invoke("embeddings_start", self.scatter(jagged))
        pending = self.world.invoke("embeddings_lookup", pending)
        out = self.world.invoke("embeddings_wait", pending)
        count = len(self.model.lookups())
        results = [torch.cat([out[rank][k] for rank in range(self.plan.devices)])
                   for k in range(count)]
        return results, [part[count:] for part in out]

    def local_gradients(self, jagged, gradients):
        """Rows of each gradient that belong to each device's samples."""
        local = self.scatter(jagged)
        sizes = [[self.rows_of(reader) for reader in self.readers(part)] for part in local]
        cut = [gradient.split([sizes[rank][k] for rank in range(self.plan.devices)])
               for k, gradient in enumerate(gradients)]
        return [[parts[rank].contiguous() for parts in cut] for rank in range(self.plan.devices)]

    def rows_of(self, reader):
        jagged, feature, lookup = reader
        if lookup.pooling != "unpooled":
            return jagged.batch
        begin, end = jagged.span(feature)
        return end - begin

    def update(self, jagged, contexts, gradients, learning_rate, number):
        """One update on all devices; gives the gradients of the sample weights per input,
        over the global batch."""
        local = self.local_gradients(jagged, gradients)
        out = self.world.invoke("embeddings_gradients", [
            [*contexts[rank], *local[rank]] for rank in range(self.plan.devices)])
        weighted = [position for position, input_ in enumerate(self.model.inputs)
                    if any(lookup.weighted for lookup in input_.lookups)]
        self.world.invoke("embeddings_update", [
            [*one[len(weighted):], learning_rate, number] for one in out])
        parts = self.scatter(jagged)
        return {position: join_by_feature([part[position] for part in parts],
                                          [out[rank][k] for rank in range(self.plan.devices)])
                for k, position in enumerate(weighted)}

    def sync_reference(self):
        for name, (weights, states) in self.tables().items():
            self.reference.set_table(name, weights, states)

    def reorders(self, lookup):
        """Whether a row shard reorders the sum of a lookup."""
        return lookup.pooling != "unpooled" and self.plan.splits_rows(lookup.table)

    # Comparisons

    def check_forward(self, jagged, results, integers):
        """Results against the reference program and torch."""
        expected = self.reference.forward(jagged)
        for k, (batch, feature, lookup) in enumerate(self.readers(jagged)):
            what = f"result {k} {lookup}"
            weights = self.reference.weights[lookup.table]
            bounded = oracle.forward(weights, batch, feature, lookup)
            oracle.assert_within(results[k], bounded, f"{what} against float64")
            self.check_forward_f32(results[k], weights, batch, feature, lookup, bounded, what)
            oracle.assert_within(expected[k], bounded, f"{what}: reference against float64")
            if integers or not self.reorders(lookup):
                oracle.assert_same_bits(results[k], expected[k], f"{what} against the reference")

    @staticmethod
    def check_forward_f32(result, weights, batch, feature, lookup, bounded, what):
        theirs = oracle.forward_f32(weights, batch, feature, lookup)
        if lookup.result == "f32":  # both have rounded their sums
            oracle.assert_within(result, oracle.Bounded(theirs.double(), 2 * bounded.error),
                                 f"{what} against torch's float32")

    def check_update(self, before, jagged, gradients, learning_rate, number):
        """Tables after an update against the formulas in torch, from the tables before."""
        after = self.tables()
        by_table = {}
        for reader, gradient in zip(self.readers(jagged), gradients):
            by_table.setdefault(reader[2].table, []).append((*reader, gradient))
        for table in self.model.tables:
            weights, states = before[table.name]
            if table.optimizer is None or table.name not in by_table:
                expected = [oracle.Bounded(v.double(), torch.zeros(v.shape).double())
                            for v in (weights, *states)]
            else:
                gradient = oracle.table_gradient(weights, by_table[table.name])
                expected = optimizers.step(table.optimizer, weights, states, gradient,
                                           learning_rate, number, self.column_groups(table))
            got = [after[table.name][0], *after[table.name][1]]
            for part, (value, bounded) in enumerate(zip(got, expected)):
                oracle.assert_within(value, bounded,
                                     f"{table} array {part} after step {number}")
        return after

    def check_reference_update(self, after, exact):
        """Tables after an update against those of the reference program, bit for bit
        where `exact(table)`."""
        for table in self.model.tables:
            if not exact(table):
                continue
            ours = [after[table.name][0], *after[table.name][1]]
            theirs = [self.reference.weights[table.name], *self.reference.get_states(table.name)]
            for part, (value, expected) in enumerate(zip(ours, theirs)):
                oracle.assert_same_bits(value, expected,
                                        f"{table} array {part} against the reference")

    def check_weight_gradients(self, before, jagged, gradients, got):
        """Gradients of the sample weights against torch's autograd."""
        expected = {p: oracle.Bounded(torch.zeros(len(jagged[p].ids)).double(),
                                      torch.zeros(len(jagged[p].ids)).double()) for p in got}
        for (batch, feature, lookup), gradient in zip(self.readers(jagged), gradients):
            if not lookup.weighted:
                continue
            position = next(p for p in got if jagged[p] is batch)
            part = slice(*batch.span(feature))
            one = oracle.sample_weight_gradient(before[lookup.table][0], batch, feature, lookup,
                                                gradient)
            expected[position].value[part] += one.value
            expected[position].error[part] += one.error
        for position, bounded in expected.items():
            oracle.assert_within(got[position], bounded,
                                 f"gradient of the weights of input {position}")


def join_by_feature(parts, values):
    """One value per id, from local batches to the order of the global batch."""
    joined = []
    for feature in range(parts[0].features):
        for part, value in zip(parts, values):
            joined.append(value[slice(*part.span(feature))])
    return torch.cat(joined)
