//===- LocalProgram.cpp - Program of one device for a shard set -----------===//

#include "LocalProgram.h"

#include "neuroshard/Artifact/Manifest.h"

#include <algorithm>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::collect;

namespace {

std::string numbered(char letter, size_t number) {
  std::string name(1, letter);
  name += std::to_string(number);
  return name;
}

int64_t dimOf(const LocalTable &table) {
  return std::accumulate(table.widths.begin(), table.widths.end(), int64_t{0});
}

Expected<std::vector<LocalTable>> makeTables(const MeasuredSet &set) {
  std::vector<LocalTable> tables;
  for (const Shard &shard : set.shards) {
    if (shard.hasCopies())
      return failure(shard.name, "a replicated shard cannot be measured alone");
    int table = set.problem.tableIndex(shard.table);
    if (table < 0)
      return failure(shard.name, "there is no table '" + shard.table + "'");
    auto same = std::find_if(
        tables.begin(), tables.end(), [&](const LocalTable &local) {
          return local.table == table && local.rowBegin == shard.rowBegin &&
                 local.rowEnd == shard.rowEnd;
        });
    if (same == tables.end())
      same = tables.insert(tables.end(),
                           {table, shard.rowBegin, shard.rowEnd, {}});
    same->widths.push_back(shard.width());
  }
  return tables;
}

/// True if the local table's column shards need the norms of other columns.
Expected<bool> isTwoPhase(const MeasuredSet &set, const LocalTable &local) {
  const Table &table = set.problem.tables[static_cast<size_t>(local.table)];
  if (!needsNormExchange(table.optimizer.kind, set.problem.optimizerSemantics,
                         local.widths[0] != table.dim))
    return false;
  if (local.widths.size() == 1)
    return failure(table.name,
                   "one column shard of a table with exact row-wise optimizer "
                   "state cannot be measured alone; use per_shard semantics");
  return true;
}

class ProgramMaker {
public:
  ProgramMaker(const MeasuredSet &set, LocalProgram &program)
      : set(set), program(program) {}

  Expected<void> make();

private:
  const Table &tableOf(const LocalTable &local) const {
    return set.problem.tables[static_cast<size_t>(local.table)];
  }
  const Feature &featureOf(const LocalLookup &lookup) const {
    return set.problem.features[static_cast<size_t>(lookup.feature)];
  }
  void addLookups();
  void addExchange(const std::vector<LocalLookup> &lookups, bool weighted);
  Expected<void> addSlots(size_t index);
  void bind(size_t tableIndex, size_t slot, int64_t width);

  const MeasuredSet &set;
  LocalProgram &program;
  Manifest manifest;
  DeviceBinding binding;
};

void ProgramMaker::addLookups() {
  for (size_t t = 0; t < program.tables.size(); ++t)
    for (size_t f = 0; f < set.problem.features.size(); ++f)
      if (const Feature &feature = set.problem.features[f];
          feature.table == program.tables[t].table)
        program.lookups[feature.weighted ? 1 : 0].push_back(
            {static_cast<int>(t), static_cast<int>(f)});
}

void ProgramMaker::addExchange(const std::vector<LocalLookup> &lookups,
                               bool weighted) {
  if (lookups.empty())
    return;
  ExchangeSpec exchange;
  exchange.input = weighted ? "weighted" : "ids";
  exchange.idType = set.problem.batch.idType;
  exchange.weighted = weighted;
  for (const LocalLookup &lookup : lookups) {
    Pooling pooling = featureOf(lookup).pooling;
    exchange.lookups.push_back({lookup.localTable,
                                static_cast<int32_t>(exchange.features.size()),
                                pooling, weighted && pooling != Pooling::None,
                                std::nullopt, ElementType::F32});
    exchange.features.push_back(numbered('f', exchange.features.size()));
  }
  manifest.exchanges.push_back(std::move(exchange));
}

/// The lookups of a slot, in the order of the exchanges.
void ProgramMaker::bind(size_t tableIndex, size_t slot, int64_t width) {
  const Table &table = tableOf(program.tables[tableIndex]);
  int32_t exchange = 0;
  for (const std::vector<LocalLookup> &lookups : program.lookups) {
    if (lookups.empty())
      continue;
    for (size_t k = 0; k < lookups.size(); ++k) {
      if (lookups[k].localTable != static_cast<int>(tableIndex))
        continue;
      const Feature &feature = featureOf(lookups[k]);
      bool pooled = feature.pooling != Pooling::None;
      program.kernels.push_back(
          {width, std::string(toString(table.elementType)),
           static_cast<int>(idBytes(set.problem.batch.idType)), pooled,
           feature.weighted && pooled});
      program.slotOfKernel.push_back(static_cast<int>(slot));
      binding.lookups.push_back(
          {exchange, static_cast<int32_t>(k), static_cast<int32_t>(slot)});
    }
    ++exchange;
  }
}

Expected<void> ProgramMaker::addSlots(size_t index) {
  const LocalTable &local = program.tables[index];
  const Table &table = tableOf(local);
  int64_t rows = local.rowEnd - local.rowBegin;
  Expected<bool> twoPhase = isTwoPhase(set, local);
  if (!twoPhase)
    return tl::unexpected(twoPhase.error());
  bool weighted =
      std::any_of(set.problem.features.begin(), set.problem.features.end(),
                  [&](const Feature &feature) {
                    return feature.table == local.table && feature.weighted &&
                           feature.pooling != Pooling::None;
                  });
  Optimizer optimizer = table.optimizer;
  optimizer.initialAccumulator = 0;
  manifest.tables.push_back(
      {numbered('t', index), rows, dimOf(local), table.elementType, optimizer});
  int64_t column = 0;
  for (int64_t width : local.widths) {
    size_t slot = program.slots.size();
    program.slots.push_back({width, std::string(toString(table.elementType)),
                             std::string(toString(table.optimizer.kind)),
                             weighted, *twoPhase});
    manifest.shards.push_back({numbered('s', slot),
                               static_cast<int32_t>(index),
                               {0, rows},
                               {column, column + width},
                               {0}});
    column += width;
    binding.slots.push_back(static_cast<int32_t>(slot));
    bind(index, slot, width);
  }
  return {};
}

Expected<void> ProgramMaker::make() {
  manifest.targetCpu = "host";
  manifest.numDevices = 1;
  manifest.optimizerSemantics = set.problem.optimizerSemantics;
  manifest.programs.push_back({"kernels"});
  addLookups();
  addExchange(program.lookups[0], false);
  addExchange(program.lookups[1], true);
  for (size_t t = 0; t < program.tables.size(); ++t)
    if (Expected<void> done = addSlots(t); !done)
      return done;
  manifest.bindings.push_back(std::move(binding));
  program.manifest = writeManifest(manifest);
  return {};
}

} // namespace

Expected<LocalProgram>
neuroshard::collect::makeLocalProgram(const MeasuredSet &set) {
  LocalProgram program;
  Expected<std::vector<LocalTable>> tables = makeTables(set);
  if (!tables)
    return tl::unexpected(tables.error());
  program.tables = std::move(*tables);
  if (Expected<void> made = ProgramMaker(set, program).make(); !made)
    return tl::unexpected(made.error());
  return program;
}
