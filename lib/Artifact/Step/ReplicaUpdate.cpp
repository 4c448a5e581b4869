//===- ReplicaUpdate.cpp - Gradients of replicated tables -----------------===//

#include "neuroshard/Artifact/ReplicaUpdate.h"

#include <algorithm>
#include <map>

namespace neuroshard {
namespace {

constexpr int64_t kBagBytes = 4, kWeightBytes = 4;
/// Values of f32 in 16 bytes.
constexpr int64_t kSectionValues = 4;

/// The part of `local` with these entries.
EntrySubset select(const StreamSet &local, std::vector<int32_t> entries) {
  EntrySubset subset;
  std::map<int32_t, int32_t> streams;
  for (int32_t index : entries) {
    EntryLayout entry = local.entries[static_cast<size_t>(index)];
    auto [stream, isNew] = streams.try_emplace(
        entry.stream, static_cast<int32_t>(subset.set.streams.size()));
    if (isNew) {
      subset.set.streams.push_back(
          local.streams[static_cast<size_t>(entry.stream)]);
      subset.streams.push_back(entry.stream);
    }
    entry.stream = stream->second;
    if (entry.pooled) {
      entry.pooledColumn = subset.set.pooledWidth;
      subset.set.pooledWidth += entry.cols.size();
    }
    subset.set.entries.push_back(entry);
  }
  subset.entries = std::move(entries);
  return subset;
}

/// A table has one update in a step, so only tables of one exchange can leave
/// it to the sums of that exchange.
bool isInOneExchange(const ExchangePlan &plan, int32_t table) {
  auto reads = [&](const ExchangeSpec &exchange) {
    return std::any_of(
        exchange.lookups.begin(), exchange.lookups.end(),
        [&](const ExchangeLookup &lookup) { return lookup.table == table; });
  };
  return std::count_if(plan.exchanges.begin(), plan.exchanges.end(), reads) ==
         1;
}

/// The entries of each table, in their order.
std::map<int32_t, std::vector<int32_t>>
entriesOfTables(const ExchangeSpec &spec, const StreamSet &local) {
  std::map<int32_t, std::vector<int32_t>> entries;
  for (size_t e = 0; e < local.entries.size(); ++e) {
    if (local.entries[e].readers.areNone())
      continue;
    auto lookup = static_cast<size_t>(local.entries[e].lookup);
    entries[spec.lookups[lookup].table].push_back(static_cast<int32_t>(e));
  }
  return entries;
}

/// Places the sums of all tables, then the numbers of their rows.
void placeSums(ReplicaUpdate &update) {
  for (RowSums &sums : update.tables) {
    sums.firstValue = update.numSums;
    update.numSums += sums.rows * sums.stride;
  }
  for (RowSums &sums : update.tables) {
    sums.firstCount = update.numSums;
    update.numSums += paddedColumns(sums.rows);
  }
}

} // namespace

std::vector<int64_t>
EntrySubset::idsOf(std::span<const int64_t> idsOfStream) const {
  std::vector<int64_t> ids;
  for (int32_t stream : streams)
    ids.push_back(idsOfStream[static_cast<size_t>(stream)]);
  return ids;
}

Range ReduceLevel::section(size_t peer) const {
  auto all = static_cast<int64_t>(peers.size());
  auto begin = [&](size_t index) {
    return sums.begin + sums.size() / kSectionValues *
                            static_cast<int64_t>(index) / all * kSectionValues;
  };
  return {begin(peer), begin(peer + 1)};
}

/// The device of this number in the order of ranks.
static int32_t deviceAt(const std::vector<int32_t> &group, size_t number) {
  if (std::ranges::is_sorted(group))
    return group[number];
  std::vector<int32_t> ascending = group;
  std::ranges::sort(ascending);
  return ascending[number];
}

/// The level of some devices, of which `rank` is one.
static ReduceLevel levelOf(std::vector<int32_t> devices, int32_t rank,
                           Range sums) {
  std::sort(devices.begin(), devices.end());
  auto own = std::find(devices.begin(), devices.end(), rank) - devices.begin();
  return {std::move(devices), static_cast<size_t>(own), sums};
}

std::vector<ReduceLevel> reduceLevels(const DeviceGroups &groups, int32_t rank,
                                      int64_t numSums) {
  ReduceLevel inside =
      levelOf(groups.group(groups.placeOf(rank).group), rank, {0, numSums});
  std::vector<int32_t> across;
  for (int32_t group = 0; group < groups.numGroups(); ++group)
    across.push_back(deviceAt(groups.group(group), inside.own));
  if (across.size() == 1)
    return {inside};
  return {inside, levelOf(std::move(across), rank, inside.ownSection())};
}

int64_t rowSumBytes(int64_t rows, int64_t dim, WireFormat gradients) {
  return 2 * rows * (paddedColumns(dim) + 1) *
         valueBytes(rowSumFormat(gradients));
}

bool sendsRowSums(int64_t rows, int64_t dim, WireFormat gradients,
                  int64_t gatheredBytes) {
  return rowSumBytes(rows, dim, gradients) < gatheredBytes;
}

int64_t gatheredBytes(const ExchangeLookup &lookup, int64_t dim,
                      int64_t idBytes, WireFormat gradients, int64_t bags,
                      int64_t ids) {
  int64_t rows = lookup.pooled() ? bags : ids;
  return (lookup.pooled() ? bags * kBagBytes : 0) +
         ids * (idBytes + (lookup.weighted ? kWeightBytes : 0)) +
         rows * rowBytes(gradients, dim);
}

ReplicaUpdate makeReplicaUpdate(const ExchangePlan &plan, size_t exchange,
                                const StreamSet &local, int64_t bags,
                                std::span<const int64_t> idsOfStream,
                                const ReplicaUpdate *earlier) {
  const ExchangeSpec &spec = plan.exchanges[exchange];
  int32_t packedIdBytes = plan.packedIdBytes(spec);
  WireFormat gradients = plan.wireType.gradients;
  ReplicaUpdate update;
  std::vector<bool> isSummed(local.entries.size());
  for (const auto &[index, entries] : entriesOfTables(spec, local)) {
    const TableSpec &table = plan.tables[static_cast<size_t>(index)];
    int64_t bytes = 0;
    bool weighted = false;
    for (int32_t e : entries) {
      const EntryLayout &entry = local.entries[static_cast<size_t>(e)];
      const ExchangeLookup &lookup =
          spec.lookups[static_cast<size_t>(entry.lookup)];
      weighted |= lookup.weighted;
      bytes += gatheredBytes(lookup, table.dim, packedIdBytes, gradients, bags,
                             idsOfStream[static_cast<size_t>(entry.stream)]);
    }
    bool isSmaller = sendsRowSums(table.rows, table.dim, gradients, bytes);
    if (!table.trained() || !isInOneExchange(plan, index) ||
        !(earlier ? earlier->sums(index) : isSmaller))
      continue;
    for (int32_t e : entries)
      isSummed[static_cast<size_t>(e)] = true;
    update.tables.push_back(
        {local.entries[static_cast<size_t>(entries.front())].slot, index,
         table.rows, paddedColumns(table.dim), weighted, 0, 0});
  }
  std::vector<int32_t> gathered, summed;
  for (size_t e = 0; e < isSummed.size(); ++e)
    if (!local.entries[e].readers.areNone())
      (isSummed[e] ? summed : gathered).push_back(static_cast<int32_t>(e));
  update.gathered = select(local, std::move(gathered));
  update.summed = select(local, std::move(summed));
  placeSums(update);
  return update;
}

} // namespace neuroshard
