//===- Separation.cpp - Devices that hold separated tables ----------------===//

#include "Separation.h"

#include <algorithm>

using namespace neuroshard;

Separation::Separation(const SearchContext &context) : context(&context) {
  if (!context.problem.constraints.separate.empty())
    shards.resize(static_cast<size_t>(context.deviceCount));
}

void Separation::clear() {
  for (std::map<int, int> &tables : shards)
    tables.clear();
}

void Separation::count(int device, const ShardFacts &facts, int sign) {
  std::map<int, int> &tables = shards[static_cast<size_t>(device)];
  for (const ShardWork &work : facts.works)
    if (!context->rulesOf(work.table).separateSets.empty() &&
        (tables[work.table] += sign) == 0)
      tables.erase(work.table);
}

static int64_t shardsOfTable(const ShardFacts &facts, int table) {
  return std::count_if(
      facts.works.begin(), facts.works.end(),
      [&](const ShardWork &work) { return work.table == table; });
}

bool Separation::admits(int device, const ShardFacts &facts,
                        const ShardFacts *leaving) const {
  if (shards.empty())
    return true;
  const std::map<int, int> &tables = shards[static_cast<size_t>(device)];
  auto holds = [&](int table) {
    auto found = tables.find(table);
    return found != tables.end() &&
           found->second > (leaving ? shardsOfTable(*leaving, table) : 0);
  };
  for (const ShardWork &work : facts.works)
    for (int set : context->rulesOf(work.table).separateSets)
      for (int other :
           context->problem.constraints.separate[static_cast<size_t>(set)])
        if (other != work.table && holds(other))
          return false;
  return true;
}

bool Separation::holds(int device, const ShardFacts &facts) const {
  if (shards.empty())
    return false;
  const std::map<int, int> &tables = shards[static_cast<size_t>(device)];
  return std::any_of(
      facts.works.begin(), facts.works.end(),
      [&](const ShardWork &work) { return tables.contains(work.table); });
}
