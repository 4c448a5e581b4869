"""Measures features and tables in batches: pooling, presence, reuse, hot rows.

The definitions are those of docs/formats.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy

from neuroshard._model_names import key_in
from neuroshard._vocabulary import REUSE_BIN_UPPER, REUSE_BINS
from neuroshard.errors import InputError
from neuroshard.problem import ShardingProblem
from neuroshard.tables import Access, Feature, FeatureStatistics, RowMass, Table, TableStatistics

# The shares of hottest rows for which their share of the lookups is recorded; of the first rows where these are
# nearly as hot.
ROW_SHARES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
DIGITS = 6
# Rows count as in the order of their use where the first ones get this part of what as many of the hottest get, of
# which counts of a sample find more than there are, and some more than if all rows were alike.
AS_HOT = 0.8
SKEWED = 2.0
# Fewer lookups say nothing of that.
FEWEST_LOOKUPS = 1000


class FeatureCounts:
    """Counts of one feature. samples, present: over all batches. per_sample: ids per sample of each
    batch."""

    def __init__(self) -> None:
        self.samples = 0
        self.present = 0
        self.ids = 0
        self.per_sample: list[float] = []

    def add(self, lengths: numpy.ndarray, ids: int) -> None:
        """lengths: of the samples. ids: how many count."""
        self.samples += len(lengths)
        self.present += int((lengths > 0).sum())
        self.ids += ids
        self.per_sample.append(ids / len(lengths))

    def statistics(self, feature: str) -> FeatureStatistics:
        presence = self.present / self.samples
        pooling = self.ids / self.present if self.present else 0.0
        # At least the largest of 99 in 100 batches, and at least the mean over all batches.
        p99 = float(numpy.quantile(self.per_sample, 0.99, method="higher"))
        p99 = max(p99, pooling * presence)
        return FeatureStatistics(feature, mean_pooling=pooling, p99_pooling=p99,
                                    presence=presence)


class TableCounts:
    """Counts of one table. bins: distinct ids of a batch by how often they occur in it, summed over
    the batches. rows, counts: all rows seen, ascending, and how often."""

    def __init__(self) -> None:
        self.bins = numpy.zeros(REUSE_BINS, dtype=numpy.int64)
        self.rows = numpy.zeros(0, dtype=numpy.int64)
        self.counts = numpy.zeros(0, dtype=numpy.int64)
        self.samples: list[int] = []

    def add(self, ids: numpy.ndarray, samples: int) -> None:
        rows, counts = numpy.unique(ids.astype(numpy.int64), return_counts=True)
        self.bins += numpy.bincount(bin_of(counts), minlength=REUSE_BINS)
        merged, places = numpy.unique(numpy.concatenate([self.rows, rows]), return_inverse=True)
        both = numpy.concatenate([self.counts, counts])
        self.counts = numpy.bincount(places, both, minlength=len(merged)).astype(numpy.int64)
        self.rows = merged
        self.samples.append(samples)

    def access(self, table: Table, reordered: bool = False) -> Access | None:
        """None when no id was seen. reordered: as if rows were in the order of row_order()."""
        total = int(self.bins.sum())
        if not total:
            return None
        by_use = has_order(table) and (reordered or self.is_by_use(table.rows))
        return Access(batch=round(sum(self.samples) / len(self.samples)),
                      reuse=[int(one) / total for one in self.bins],
                      row_mass=self.row_mass(table.rows, self.of_first if by_use and not reordered else self.of_hottest),
                      rows_by_use=by_use)

    def row_order(self, rows: int) -> numpy.ndarray:
        """The row of each id, int64 [rows]: by falling counts, of equal ones by id; ids that were not seen follow in
        their order."""
        hottest = self.rows[numpy.lexsort((self.rows, -self.counts))]
        is_unseen = numpy.ones(rows, dtype=bool)
        is_unseen[hottest] = False
        order = numpy.empty(rows, dtype=numpy.int64)
        order[hottest] = numpy.arange(len(hottest))
        order[is_unseen] = numpy.arange(len(hottest), rows)
        return order

    def of_hottest(self, count: int) -> float:
        """The share of the lookups that so many of the hottest rows get."""
        hottest = numpy.sort(self.counts)[::-1]
        return float(hottest[:count].sum() / self.counts.sum())

    def of_first(self, count: int) -> float:
        """The share of the lookups that so many of the first rows get."""
        return float(self.counts[:numpy.searchsorted(self.rows, count)].sum() / self.counts.sum())

    def is_by_use(self, rows: int) -> bool:
        """Whether the first rows are about as hot as the hottest."""
        counts = counts_of_shares(rows)
        return (bool(self.counts.sum() >= FEWEST_LOOKUPS)
                and all(self.of_first(count) >= AS_HOT * self.of_hottest(count) for count in counts)
                and any(self.of_first(count) >= SKEWED * count / rows for count in counts))

    def row_mass(self, rows: int, share_of: Callable[[int], float]) -> list[RowMass]:
        """share_of: of the lookups, by the number of rows."""
        points = []
        for count in counts_of_shares(rows):
            lookups = share_of(count)
            points.append(RowMass(round(count / rows, 9), round(lookups, DIGITS)))
            if lookups >= 1:
                break
        return points


def has_order(table: Table) -> bool:
    """Whether rows of a table may be in the order of their use: not where a hash or the first use gives rows to ids."""
    return not table.hashed and not table.dynamic_ids


def counts_of_shares(rows: int) -> list[int]:
    """The numbers of rows of ROW_SHARES, of so many."""
    return [count for share in ROW_SHARES if (count := int(share * rows)) >= 1]


def bin_of(counts: numpy.ndarray) -> numpy.ndarray:
    """The bins of a reuse histogram: 0 for once, 1 for twice, 2 for 3-4, 3 for 5-8, ..."""
    return numpy.searchsorted(REUSE_BIN_UPPER, counts)


class Profile:
    """Collects the counts of all features and tables, batch by batch.

    keys: of features whose key in the batches is not found by their names (key_in). distinct_ids: ids of
    features that are not pooled count once in each device's part of a batch, as modules with distinct_ids
    send them; the problem has a topology then. Raises an InputError for features that the problem does not
    have."""

    def __init__(self, problem: ShardingProblem, keys: Mapping[str, str] | None = None,
                 distinct_ids: bool = False) -> None:
        self.problem = problem
        self.parts = problem.topology.device_count if distinct_ids else 0
        self.keys = dict(keys or {})
        unknown = sorted(set(self.keys) - {one.name for one in problem.features})
        if unknown:
            raise InputError(f"there is no feature '{unknown[0]}' in the workload; it has "
                             f"{', '.join([one.name for one in problem.features][:8])}")
        self.features = {one.name: FeatureCounts() for one in problem.features}
        self.tables = {one.name: TableCounts() for one in problem.tables}
        self.readers = defaultdict(list)
        for one in problem.features:
            self.readers[one.table].append(one.name)
        self.ignored: set[str] = set()
        self.seen: set[str] = set()
        self.batches = 0

    def add(self, batch: Mapping[str, tuple[numpy.ndarray, numpy.ndarray]], where: str) -> None:
        read = {one.name: key for one in self.problem.features if (key := self._key_in(batch, one))}
        self.ignored |= set(batch) - set(read.values())
        self.seen |= set(batch)
        if not read:
            raise InputError(f"{where}: none of the workload's features is in it; it has "
                             f"{', '.join(sorted(batch)) or 'nothing'}, the workload has "
                             f"{', '.join(list(self.features)[:8])}; --map FEATURE=KEY says which "
                             "key is a feature's")
        self._check_samples({name: len(batch[key][1]) for name, key in read.items()}, where)
        ids_of = {one.name: self._counted(batch[read[one.name]], one) for one in self.problem.features
                  if one.name in read}
        for name, key in read.items():
            self.features[name].add(batch[key][1], len(ids_of[name]))
        for table in self.problem.tables:
            names = [name for name in self.readers[table.name] if name in read]
            if names:
                seen = [read[name] for name in names]
                ids = numpy.concatenate([ids_of[name] for name in names])
                check_rows(ids, table, f"{where}: {', '.join(seen)}")
                self.tables[table.name].add(ids, max(len(batch[key][1]) for key in seen))
        self.batches += 1

    def _check_samples(self, samples: Mapping[str, int], where: str) -> None:
        """Raises an InputError unless features of one batch have as many samples, one at least. samples: by feature."""
        first: dict[int, str] = {}
        for one in self.problem.features:
            if one.name not in samples:
                continue
            if not samples[one.name]:
                raise InputError(f"{where}: {one.name}: expected at least one sample in a batch, got: 0; leave out "
                                 "batches without samples")
            other = first.setdefault(one.batch or self.problem.batch.global_size, one.name)
            if samples[one.name] != samples[other]:
                raise InputError(f"{where}: expected as many samples of every feature, got: {samples[other]} of {other} "
                                 f"and {samples[one.name]} of {one.name}; a feature with a batch of its own states it as "
                                 "'batch' in the workload")

    def _counted(self, given: tuple[numpy.ndarray, numpy.ndarray], feature: Feature) -> numpy.ndarray:
        """The ids of a feature that count."""
        ids, lengths = given
        if not self.parts or feature.pooling != "none":
            return ids
        ends = numpy.cumsum([part.sum() for part in numpy.array_split(lengths, self.parts)])
        return numpy.concatenate([numpy.unique(part) for part in numpy.split(ids, ends[:-1].astype(int))])

    def _key_in(self, batch: Mapping[str, object], feature: Feature) -> str | None:
        given = self.keys.get(feature.name)
        if given is None:
            return key_in(batch, feature.name, feature.table)
        return given if given in batch else None

    def check_keys(self) -> None:
        """Raises an InputError for a key given for a feature that no batch had."""
        for feature, key in self.keys.items():
            if not self.features[feature].per_sample:
                raise InputError(f"no batch has the key '{key}' of feature '{feature}'; batches have "
                                 f"{', '.join(sorted(self.seen))}")

    def remarks(self) -> list[str]:
        """A sentence when the batches are smaller than the workload's."""
        for one in self.problem.features:
            counts, batch = self.features[one.name], one.batch or self.problem.batch.global_size
            samples = counts.samples / max(1, len(counts.per_sample))
            if 0 < samples < batch:
                return [f"Batches of {one.name} have {samples:g} samples, the workload's {batch}: "
                        "give global batches, as in parts of a batch ids repeat less."]
        return []

    def feature_statistics(self) -> list[FeatureStatistics]:
        """The statistics of features that were seen, in the workload's order."""
        return [counts.statistics(name) for name, counts in self.features.items()
                if counts.samples]

    def table_statistics(self, reordered: bool = False) -> list[TableStatistics]:
        """reordered: as if rows were in the order of row_orders()."""
        found = ((table.name, self.tables[table.name].access(table, reordered))
                 for table in self.problem.tables)
        return [TableStatistics(name, access) for name, access in found if access]

    def row_orders(self) -> dict[str, numpy.ndarray]:
        """The row of each id, by table, of those that may be in the order of their use and have ids in the batches."""
        return {table.name: self.tables[table.name].row_order(table.rows) for table in self.problem.tables
                if has_order(table) and len(self.tables[table.name].rows)}


def check_rows(ids: numpy.ndarray, table: Table, where: str) -> None:
    if len(ids) and (ids.min() < 0 or ids.max() >= table.rows):
        wrong = ids.min() if ids.min() < 0 else ids.max()
        raise InputError(f"{where}: id {wrong} is out of range for table '{table.name}' with "
                         f"{table.rows} rows; give ids as the table is looked up, after hashing")


def apply(problem: ShardingProblem, features: list[FeatureStatistics],
          tables: list[TableStatistics]) -> ShardingProblem:
    """The problem with these statistics in place of its own."""
    by_feature = {one.feature: one for one in features}
    by_table = {one.table: one.access for one in tables}
    changed = []
    for feature in problem.features:
        if one := by_feature.get(feature.name):
            feature = feature.replace(mean_pooling=one.mean_pooling, p99_pooling=one.p99_pooling,
                                      presence=one.presence)
        changed.append(feature)
    return problem.replace(
        features=changed, tables=[one.replace(access=by_table.get(one.name, one.access))
                                  for one in problem.tables])
