//===- UnitOperations.cpp - Making and cutting units ----------------------===//

#include "UnitOperations.h"

#include "UnitStore.h"
#include "neuroshard/Model/LookupShares.h"

#include <algorithm>

using namespace neuroshard;

namespace {

int64_t minWidthOf(const SearchContext &context, int table) {
  return std::min(context.rulesOf(table).minWidth, context.table(table).dim);
}

bool mayCut(const Unit &unit) {
  return !unit.writtenByHand && unit.forcedDevice == -1;
}

bool maySplitColumns(const SearchContext &context, int table,
                     const Shard &shard) {
  const TableRules &rules = context.rulesOf(table);
  bool wholeRows = shard.rows() == context.table(table).rows;
  return rules.allows(wholeRows ? ShardingKind::ColumnWise
                                : ShardingKind::RowColumn) &&
         context.mayMixWidths(table, shard.rows(), shard.width());
}

bool maySplitRows(const SearchContext &context, int table, const Shard &shard) {
  // TorchRec's row-wise tables are made by rowBlocks().
  if (context.problem.target != Target::Native)
    return false;
  const TableRules &rules = context.rulesOf(table);
  bool wholeWidth = shard.width() == context.table(table).dim;
  return rules.allows(wholeWidth ? ShardingKind::RowWise
                                 : ShardingKind::RowColumn);
}

/// Cuts the shard to part `index` of `parts` of its columns; false when that is
/// too narrow.
bool cutColumns(const SearchContext &context, int table, Shard &shard,
                int index, int parts) {
  int64_t groups = (shard.width() + kColumnAlignment - 1) / kColumnAlignment;
  if (groups < parts)
    return false;
  int64_t begin = shard.colBegin + groups * index / parts * kColumnAlignment;
  int64_t end =
      shard.colBegin + groups * (index + 1) / parts * kColumnAlignment;
  shard.colEnd = index + 1 == parts ? shard.colEnd : end;
  shard.colBegin = begin;
  return shard.width() >= minWidthOf(context, table);
}

template <typename Cut>
std::optional<std::vector<UnitPtr>>
cutUnit(const SearchContext &context, const Unit &unit, int parts, Cut cut) {
  std::vector<UnitPtr> result;
  for (int part = 0; part < parts; ++part) {
    std::vector<Shard> shards = unit.shards;
    for (size_t i = 0; i < shards.size(); ++i)
      if (!cut(unit.tables[i], shards[i], part))
        return std::nullopt;
    result.push_back(makeUnit(context, std::move(shards)));
  }
  return result;
}

} // namespace

bool neuroshard::mayHaveRows(const SearchContext &context, int table,
                             int64_t rows) {
  return context.rulesOf(table).cacheShare <= 0 || rows <= kMaxCachedShardRows;
}

bool neuroshard::allowsDevice(const SearchContext &context, const Unit &unit,
                              int device) {
  if (unit.forcedDevice >= 0)
    return device == unit.forcedDevice;
  return std::all_of(unit.tables.begin(), unit.tables.end(), [&](int table) {
    return context.rulesOf(table).allowsDevice(device);
  });
}

bool neuroshard::isSeparated(const SearchContext &context, const Unit &unit) {
  return std::any_of(unit.tables.begin(), unit.tables.end(), [&](int table) {
    return !context.rulesOf(table).separateSets.empty();
  });
}

int neuroshard::freedomOf(const SearchContext &context, const Unit &unit) {
  bool pinned =
      std::any_of(unit.tables.begin(), unit.tables.end(), [&](int table) {
        return !context.rulesOf(table).devices.empty();
      });
  if (!pinned)
    return context.deviceCount + (isSeparated(context, unit) ? 0 : 1);
  int count = 0;
  for (int device = 0; device < context.deviceCount; ++device)
    count += allowsDevice(context, unit, device);
  return count;
}

Footprint neuroshard::footprintOf(const MemoryTerms &terms) {
  MemoryTerms fixed = terms;
  fixed.forwardBytes = fixed.backwardBytes = 0;
  return {fixed.peakBytes(), terms.forwardBytes, terms.backwardBytes,
          terms.hostBytes, terms.diskBytes};
}

/// Of one shard, which memory terms of its own are of.
static Footprint footprintOf(const SearchContext &context,
                             const MemoryTerms &terms, Tier tier) {
  Footprint footprint = footprintOf(terms);
  if (hasRowCache(context.problem.target, tier))
    ++(tier == Tier::Ssd ? footprint.diskCaches : footprint.hostCaches);
  return footprint;
}

static ComputeMs computeAlone(const SearchContext &context,
                              std::span<const ShardWork> works) {
  ShardSet alone{context.usedClasses.front(), {}};
  for (const ShardWork &work : works)
    alone.shards.push_back(&work);
  ComputeMs time;
  context.model.computeMs({&alone, 1}, {&time, 1});
  return time;
}

/// All but the compute. `problem` has the statistics and outlives the search.
static void describe(const SearchContext &context,
                     const ShardingProblem &problem, RowDemands *demands,
                     int table, const Shard &shard, Demand &demand) {
  const ShardWork &work = demand.works.emplace_back(
      describeShard(problem, table, context.featuresOf(table), shard,
                    context.exchangesNormsOf(table, shard), demands));
  demand.load = loadOf(work);
  const SumEmbedding *embedding = context.model.sumEmbedding();
  if (!embedding)
    return;
  size_t size = static_cast<size_t>(embedding->size());
  demand.embedding.resize(size * context.usedClasses.size());
  for (size_t c = 0; c < context.usedClasses.size(); ++c)
    embedding->embed(work, *context.usedClasses[c],
                     std::span(demand.embedding).subspan(c * size, size));
}

static std::shared_ptr<const ShardFacts>
describeFacts(const SearchContext &context, int table, const Shard &shard) {
  auto facts = std::make_shared<ShardFacts>();
  describe(context, context.problem, context.demands(), table, shard, *facts);
  facts->load.compute = computeAlone(context, facts->works);
  for (size_t i = 0; i < context.periods.size(); ++i)
    describe(context, context.periods[i], context.demandsOf(i), table, shard,
             facts->periods.emplace_back());
  facts->memory = shardMemory(context.problem, context.table(table),
                              context.featuresOf(table), shard,
                              context.exchangesNormsOf(table, shard));
  facts->footprint = footprintOf(context, facts->memory, shard.tier);
  return facts;
}

/// sum += one, but for compute.
static void addDemand(Demand &sum, const Demand &one) {
  sum.works.insert(sum.works.end(), one.works.begin(), one.works.end());
  sum.embedding.resize(one.embedding.size());
  for (size_t k = 0; k < one.embedding.size(); ++k)
    sum.embedding[k] += one.embedding[k];
  addLoads(sum.load, one.load, 1);
}

/// The row from which shards of one size differ: where the rows are in the
/// order of their use, each gets other lookups.
static int64_t positionOf(const SearchContext &context, int table,
                          const Shard &shard) {
  auto inOrder = [&](const ShardingProblem &problem) {
    return hasRowsByUse(problem.tables[static_cast<size_t>(table)]);
  };
  return inOrder(context.problem) ||
                 std::ranges::any_of(context.periods, inOrder)
             ? shard.rowBegin
             : 0;
}

/// Of a shard that is not written by hand, in the tier of its table. Those of
/// one table and size have the same facts; units keep those of others.
std::shared_ptr<const ShardFacts>
neuroshard::factsOf(const SearchContext &context, int table,
                    const Shard &shard) {
  Shard placed = shard;
  followRules(context.rulesOf(table), placed);
  auto make = [&] { return describeFacts(context, table, placed); };
  if (placed.tier != Tier::Hbm && context.rulesOf(table).cacheShare <= 0)
    return make();
  return context.store().facts({table, shard.rows(), shard.width(),
                                static_cast<int64_t>(shard.devices.size()),
                                positionOf(context, table, shard)},
                               make);
}

static UnitPtr buildUnit(const SearchContext &context,
                         std::vector<Shard> shards, int forcedDevice,
                         bool writtenByHand) {
  auto unit = std::make_shared<Unit>();
  unit->forcedDevice = forcedDevice;
  unit->writtenByHand = writtenByHand;
  for (Shard &shard : shards) {
    int table = context.tableIndex(shard.table);
    if (!writtenByHand)
      followRules(context.rulesOf(table), shard);
    std::shared_ptr<const ShardFacts> facts =
        writtenByHand ? describeFacts(context, table, shard)
                      : factsOf(context, table, shard);
    unit->tables.push_back(table);
    unit->memory += facts->memory;
    unit->footprint += facts->footprint;
    addDemand(*unit, *facts);
    unit->periods.resize(facts->periods.size());
    for (size_t p = 0; p < facts->periods.size(); ++p)
      addDemand(unit->periods[p], facts->periods[p]);
    unit->load.compute = facts->load.compute;
  }
  if (shards.size() > 1)
    unit->load.compute = computeAlone(context, unit->works);
  for (size_t i = 0; i < shards.size(); ++i) {
    const TableRules &rules = context.rulesOf(unit->tables[i]);
    unit->restricted = unit->restricted || !rules.devices.empty() ||
                       !rules.separateSets.empty();
    unit->sizeKey ^=
        HashNumbers<5>()({unit->tables[i], shards[i].rows(), shards[i].width(),
                          static_cast<int64_t>(shards[i].devices.size()),
                          positionOf(context, unit->tables[i], shards[i])});
  }
  unit->shards = std::move(shards);
  return unit;
}

UnitPtr neuroshard::makeUnit(const SearchContext &context,
                             std::vector<Shard> shards, int forcedDevice,
                             bool writtenByHand) {
  auto make = [&] {
    return buildUnit(context, std::move(shards), forcedDevice, writtenByHand);
  };
  bool plain = shards.size() == 1 && forcedDevice == -1 && !writtenByHand &&
               shards.front().devices.empty();
  if (!plain)
    return make();
  const Shard &shard = shards.front();
  std::array<int64_t, 5> rectangle = {context.tableIndex(shard.table),
                                      shard.rowBegin, shard.rowEnd,
                                      shard.colBegin, shard.colEnd};
  return context.store().unit(rectangle, make);
}

std::optional<std::vector<UnitPtr>>
neuroshard::splitColumns(const SearchContext &context, const Unit &unit,
                         int parts) {
  if (!mayCut(unit))
    return std::nullopt;
  return cutUnit(context, unit, parts, [&](int table, Shard &shard, int part) {
    return maySplitColumns(context, table, shard) &&
           cutColumns(context, table, shard, part, parts);
  });
}

std::optional<std::vector<UnitPtr>>
neuroshard::splitRows(const SearchContext &context, const Unit &unit,
                      int parts) {
  if (!mayCut(unit))
    return std::nullopt;
  return cutUnit(context, unit, parts, [&](int table, Shard &shard, int part) {
    if (!maySplitRows(context, table, shard) || shard.rows() < parts)
      return false;
    // rows * part may exceed 64 bits; the quotient and rest do not.
    int64_t whole = shard.rows() / parts, rest = shard.rows() % parts;
    int64_t begin = shard.rowBegin + whole * part + rest * part / parts;
    int64_t end =
        shard.rowBegin + whole * (part + 1) + rest * (part + 1) / parts;
    shard.rowBegin = begin;
    shard.rowEnd = end;
    return true;
  });
}

std::optional<std::vector<UnitPtr>>
neuroshard::halveColumns(const SearchContext &context, const Unit &unit) {
  for (const Shard &shard : unit.shards)
    if (shard.width() % (2 * kColumnAlignment) != 0)
      return std::nullopt;
  return splitColumns(context, unit, 2);
}

std::optional<std::vector<UnitPtr>>
neuroshard::cutAtShare(const SearchContext &context, const Unit &unit,
                       double share, Cut direction) {
  if (!mayCut(unit))
    return std::nullopt;
  return cutUnit(context, unit, 2, [&](int table, Shard &shard, int part) {
    bool columns = direction == Cut::Columns;
    if (!(columns ? maySplitColumns(context, table, shard)
                  : maySplitRows(context, table, shard)))
      return false;
    int64_t size = columns ? shard.width() : shard.rows();
    int64_t first = static_cast<int64_t>(share * static_cast<double>(size));
    if (columns)
      first = first / kColumnAlignment * kColumnAlignment;
    if (first < 1 || first >= size)
      return false;
    if (columns)
      (part ? shard.colBegin : shard.colEnd) = shard.colBegin + first;
    else
      (part ? shard.rowBegin : shard.rowEnd) = shard.rowBegin + first;
    return !columns || shard.width() >= minWidthOf(context, table);
  });
}

std::optional<std::vector<UnitPtr>>
neuroshard::betterCut(const std::optional<std::vector<UnitPtr>> &columns,
                      const std::optional<std::vector<UnitPtr>> &rows) {
  constexpr double kClearly = 0.95;
  if (!columns || !rows)
    return columns ? columns : rows;
  auto bytes = [](const std::vector<UnitPtr> &parts) {
    double sum = 0;
    for (const UnitPtr &part : parts)
      sum += static_cast<double>(part->peakBytes());
    return sum;
  };
  return bytes(*rows) < kClearly * bytes(*columns) ? rows : columns;
}

bool neuroshard::isWholeTable(const SearchContext &context, const Unit &unit) {
  if (unit.forcedDevice != -1 || unit.writtenByHand || unit.shards.size() != 1)
    return false;
  const Table &table = context.table(unit.tables.front());
  const Shard &shard = unit.shards.front();
  return shard.rows() == table.rows && shard.width() == table.dim;
}

bool neuroshard::canCut(const SearchContext &context, const Unit &unit) {
  return splitColumns(context, unit, 2) || splitRows(context, unit, 2);
}

std::vector<UnitPtr> neuroshard::rowBlocks(const SearchContext &context,
                                           int table,
                                           const std::vector<int> &devices) {
  const Table &source = context.table(table);
  int64_t count = static_cast<int64_t>(devices.size());
  int64_t block = (source.rows + count - 1) / count;
  std::vector<UnitPtr> units;
  for (int64_t begin = 0; begin < source.rows; begin += block) {
    Shard shard;
    shard.table = source.name;
    shard.rowBegin = begin;
    shard.rowEnd = std::min(source.rows, begin + block);
    shard.colEnd = source.dim;
    units.push_back(makeUnit(context, {shard}, devices[units.size()]));
  }
  return units;
}

std::vector<std::vector<int>>
neuroshard::rowBlockGroups(const SearchContext &context, int table) {
  const TableRules &rules = context.rulesOf(table);
  bool native = context.problem.target == Target::Native;
  std::vector<std::vector<int>> groups;
  auto add = [&](int first, int last) {
    std::vector<int> devices;
    for (int device = first; device < last; ++device)
      if (rules.allowsDevice(device))
        devices.push_back(device);
    bool complete = static_cast<int>(devices.size()) == last - first;
    // Row blocks on a single device: two.
    if (native && devices.size() == 1)
      devices.push_back(devices.front());
    if (devices.size() > 1 && (complete || native))
      groups.push_back(std::move(devices));
  };
  if (rules.allows(ShardingKind::RowWise))
    add(0, context.deviceCount);
  if (!rules.allows(ShardingKind::TableRowWise))
    return groups;
  int first = 0;
  for (int size : context.problem.topology.levels.back().groupSizes) {
    if (size < context.deviceCount || groups.empty())
      add(first, first + size);
    first += size;
  }
  return groups;
}
