//===- ExchangePlan.cpp - Tables, lookups and their shards ----------------===//

#include "neuroshard/Artifact/ExchangePlan.h"

namespace neuroshard {

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
