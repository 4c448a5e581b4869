//===- ExchangePlan.cpp - Tables, lookups and their shards ----------------===//

#include "neuroshard/Artifact/ExchangePlan.h"

#include <algorithm>

namespace neuroshard {

const LookupBinding *DeviceBinding::firstLookupOf(int32_t shard) const {
  auto found = std::ranges::find_if(lookups, [&](const LookupBinding &lookup) {
    return slots[static_cast<size_t>(lookup.slot)] == shard;
  });
  return found == lookups.end() ? nullptr : &*found;
}

bool ExchangePlan::hasRowCaches() const {
  return std::ranges::any_of(shards, &ShardSpec::hasRowCache);
}

std::vector<bool> ExchangePlan::tablesWithCopies() const {
  std::vector<bool> copied(tables.size());
  for (const ShardSpec &shard : shards)
    if (isCopied(shard))
      copied[static_cast<size_t>(shard.table)] = true;
  return copied;
}

/// The numbers of trained shards with copies that drift, or that do not.
static std::vector<int32_t> copiesThat(const ExchangePlan &plan, bool drift) {
  std::vector<int32_t> numbers;
  for (size_t i = 0; i < plan.shards.size(); ++i)
    if (const ShardSpec &shard = plan.shards[i];
        plan.isCopied(shard) && plan.tableOf(shard).trained() &&
        shard.copiesDrift() == drift)
      numbers.push_back(static_cast<int32_t>(i));
  return numbers;
}

std::vector<int32_t> ExchangePlan::trainedCopies() const {
  return copiesThat(*this, false);
}

std::vector<int32_t> ExchangePlan::driftingCopies() const {
  return copiesThat(*this, true);
}

std::vector<float> ExchangePlan::gradientFactors() const {
  std::vector<float> factors(tables.size(), 1.0f);
  for (const ShardSpec &shard : shards)
    if (shard.copiesDrift())
      factors[static_cast<size_t>(shard.table)] =
          static_cast<float>(shard.devices.size());
  return factors;
}

bool ExchangePlan::isReplicated(const ShardSpec &shard) const {
  const TableSpec &table = tableOf(shard);
  return isWholeOnAll({shard.rows.size(), shard.cols.size()},
                      {table.rows, table.dim},
                      static_cast<int64_t>(shard.devices.size()), numDevices) &&
         !shard.copiesDrift();
}

int32_t ExchangePlan::packedIdBytes(const ExchangeSpec &exchange) const {
  int64_t mostRows = 0;
  for (const ExchangeLookup &lookup : exchange.lookups)
    mostRows =
        std::max(mostRows, tables[static_cast<size_t>(lookup.table)].rows);
  return static_cast<int32_t>(
      neuroshard::idBytes(packedIdType(exchange.idType, mostRows, numDevices)));
}

std::vector<bool> ExchangePlan::tablesWithNormExchange() const {
  std::vector<bool> result(tables.size(), false);
  for (const ShardSpec &shard : shards) {
    const TableSpec &table = tableOf(shard);
    bool columnSplit = shard.cols.size() < table.dim;
    if (table.optimizer && needsNormExchange(table.optimizer->kind,
                                             optimizerSemantics, columnSplit))
      result[static_cast<size_t>(shard.table)] = true;
  }
  return result;
}

} // namespace neuroshard
