//===- MemoryLowerBound.cpp - Lower bound of memory over all cuts ---------===//

#include "MemoryLowerBound.h"

#include <algorithm>
#include <numeric>

using namespace neuroshard;

namespace {

/// A share of each term, rounded down.
MemoryTerms shareOf(const MemoryTerms &terms, double share) {
  MemoryTerms result = terms;
  for (int64_t *value :
       {&result.weightsBytes, &result.optimizerStateBytes, &result.idsBytes,
        &result.forwardBytes, &result.backwardBytes, &result.hostBytes,
        &result.diskBytes})
    *value = static_cast<int64_t>(share * static_cast<double>(*value));
  return result;
}

/// A lower bound of a table's memory when it may be cut by rows. Results of
/// unpooled row shards may take fewer bytes than those of the whole table: they
/// need no copy in the wire type, and sums of long segments of ids are counted
/// per 1,024 ids.
MemoryTerms leastByRows(const SearchContext &context, int table,
                        MemoryTerms terms) {
  const ShardingProblem &problem = context.problem;
  const Batch &batch = problem.batch;
  if (problem.memoryModel == MemoryModel::WeightsOnly)
    return terms;
  double segments = 0;
  bool unpooled = false;
  for (int index : context.featuresOf(table)) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    unpooled = unpooled || feature.pooling == Pooling::None;
    segments += static_cast<double>(featureBatch(problem, feature)) *
                p99Pooling(feature) / 1024 *
                static_cast<double>(context.table(table).dim) * 4;
  }
  if (!unpooled)
    return terms;
  auto shrink = [&](int64_t &value, WireFormat wire) {
    int64_t bytes = elementBytes(batch.outputType) +
                    (wire == formatOf(batch.outputType) ? 0 : valueBytes(wire));
    double ratio = std::min(1.0, 4 / static_cast<double>(bytes));
    value = static_cast<int64_t>(
        std::max(0.0, ratio * (static_cast<double>(value) - segments)));
  };
  shrink(terms.forwardBytes, batch.wireType.results);
  shrink(terms.backwardBytes, batch.wireType.gradients);
  return terms;
}

} // namespace

int64_t neuroshard::copiesOf(const SearchContext &context, const Unit &unit) {
  return unit.forcedDevice == Unit::kEverywhere ? context.deviceCount : 1;
}

MemoryTerms neuroshard::scaled(const MemoryTerms &terms, int64_t factor) {
  MemoryTerms result = terms;
  result.weightsBytes *= factor;
  result.optimizerStateBytes *= factor;
  result.idsBytes *= factor;
  result.forwardBytes *= factor;
  result.backwardBytes *= factor;
  result.hostBytes *= factor;
  result.diskBytes *= factor;
  return result;
}

MemoryTerms neuroshard::leastOf(const SearchContext &context,
                                const Unit &unit) {
  if (unit.writtenByHand)
    return scaled(unit.memory, copiesOf(context, unit));
  MemoryTerms sum;
  for (const Shard &shard : unit.shards) {
    int index = context.tableIndex(shard.table);
    const Table &table = context.table(index);
    Shard whole = shard;
    whole.rowBegin = whole.colBegin = 0;
    whole.rowEnd = table.rows;
    whole.colEnd = table.dim;
    whole.devices = {0};
    followRules(context.rulesOf(index), whole);
    auto memory = [&] {
      return shardMemory(context.problem, table, context.featuresOf(index),
                         whole);
    };
    MemoryTerms least = leastByRows(context, index, memory());
    const TableRules &rules = context.rulesOf(index);
    if (rules.allows(ShardingKind::Replicated) && rules.devices.empty() &&
        !rules.fixed && context.deviceCount > 1) {
      whole.devices.resize(static_cast<size_t>(context.deviceCount));
      std::iota(whole.devices.begin(), whole.devices.end(), 0);
      followRules(rules, whole); // copies may drift
      MemoryTerms replicas = scaled(memory(), context.deviceCount);
      bool only = unit.forcedDevice == Unit::kEverywhere;
      if (only || replicas.peakBytes() < least.peakBytes())
        least = replicas;
    }
    double share = elementShare(table, shard);
    sum += share < 1 ? shareOf(least, share) : least;
  }
  return sum;
}

bool neuroshard::hasOtherForms(const SearchContext &context, const Unit &unit) {
  if (unit.writtenByHand)
    return false;
  // Row shards for target native may differ in size and lie on any devices.
  if (unit.forcedDevice >= 0 && context.problem.target == Target::Native)
    return true;
  const Shard &shard = unit.shards.front();
  const TableRules &rules = context.rulesOf(unit.tables.front());
  const Table &table = context.table(unit.tables.front());
  bool whole = shard.rows() == table.rows && shard.width() == table.dim;
  // Each of several co-located tables may be cut in its own way.
  if (unit.tables.size() > 1 || (!whole && (!rules.kindsListed || rules.fixed)))
    return true;
  bool replicas = rules.allows(ShardingKind::Replicated) &&
                  rules.devices.empty() && context.deviceCount > 1;
  bool both = rules.allows(ShardingKind::RowColumn) && table.rows > 1 &&
              table.dim > kColumnAlignment && table.dim >= 2 * rules.minWidth;
  if (whole)
    return replicas || both;
  return std::count(rules.allowed.begin(), rules.allowed.end(), true) > 1;
}
