//===- TestManifest.cpp - Manifests and programs of test models -----------===//
//
// Shards get slots in their order, on each of their devices.
//
//===----------------------------------------------------------------------===//

#include "TestManifest.h"

#include <algorithm>

using nlohmann::json;

namespace neuroshard::test {

namespace {

// Element and Pool are in the order of the Model's ElementType and Pooling.
ElementType typeOf(Element type) { return static_cast<ElementType>(type); }

std::optional<neuroshard::Optimizer> optimizerOf(const Model &model) {
  neuroshard::Optimizer optimizer;
  switch (model.optimizer) {
  case Optimizer::None:
    return std::nullopt;
  case Optimizer::Sgd:
    optimizer.kind = OptimizerKind::SGD;
    return optimizer;
  case Optimizer::Adagrad:
    optimizer.kind = OptimizerKind::Adagrad;
    break;
  case Optimizer::RowwiseAdagrad:
    optimizer.kind = OptimizerKind::RowWiseAdagrad;
    break;
  case Optimizer::Adam:
    optimizer.kind = OptimizerKind::Adam;
    optimizer.beta1 = kBeta1;
    optimizer.beta2 = kBeta2;
    return optimizer;
  }
  optimizer.initialAccumulator = model.initialAccumulator;
  return optimizer;
}

ExchangeSpec describe(const Exchange &exchange, size_t index) {
  ExchangeSpec spec;
  spec.input = "input" + std::to_string(index);
  spec.idType = exchange.idBytes == 4 ? IdType::I32 : IdType::I64;
  spec.weighted = exchange.weighted;
  for (int f = 0; f < exchange.numFeatures; ++f)
    spec.features.push_back("f" + std::to_string(f));
  for (const Lookup &lookup : exchange.lookups)
    spec.lookups.push_back(
        {lookup.table, lookup.feature, static_cast<Pooling>(lookup.pooling),
         lookup.weighted, lookup.padding, typeOf(lookup.result)});
  return spec;
}

DeviceBinding bind(const Model &model, const std::vector<ShardPlace> &shards,
                   int device) {
  DeviceBinding binding;
  binding.program = device;
  for (size_t s = 0; s < shards.size(); ++s) {
    const std::vector<int> &devices = shards[s].devices;
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      continue;
    auto slot = static_cast<int32_t>(binding.slots.size());
    binding.slots.push_back(static_cast<int32_t>(s));
    for (size_t x = 0; x < model.exchanges.size(); ++x)
      for (size_t k = 0; k < model.exchanges[x].lookups.size(); ++k)
        if (model.exchanges[x].lookups[k].table == shards[s].table)
          binding.lookups.push_back(
              {static_cast<int32_t>(x), static_cast<int32_t>(k), slot});
  }
  return binding;
}

} // namespace

Manifest describe(const Model &model, const std::vector<ShardPlace> &shards,
                  int devices) {
  Manifest manifest;
  manifest.targetCpu = "generic";
  manifest.numDevices = devices;
  manifest.optimizerSemantics =
      model.exact ? OptimizerSemantics::Exact : OptimizerSemantics::PerShard;
  manifest.wireType = model.wire;
  for (const std::vector<int> &group : model.groups)
    manifest.groups.emplace_back(group.begin(), group.end());
  for (const Table &table : model.tables)
    manifest.tables.push_back(
        {table.name, table.rows, table.dim, typeOf(table.type),
         table.frozen ? std::nullopt : optimizerOf(model)});
  for (size_t x = 0; x < model.exchanges.size(); ++x)
    manifest.exchanges.push_back(describe(model.exchanges[x], x));
  for (const ShardPlace &shard : shards)
    manifest.shards.push_back({"shard" + std::to_string(manifest.shards.size()),
                               shard.table,
                               {shard.rowBegin, shard.rowEnd},
                               {shard.colBegin, shard.colEnd},
                               {shard.devices.begin(), shard.devices.end()},
                               shard.cache.rows > 0 ? Tier::Ssd : Tier::Hbm,
                               shard.cache,
                               Route::Auto,
                               shard.syncEvery});
  for (int d = 0; d < devices; ++d) {
    manifest.programs.push_back({"program" + std::to_string(d) + ".so"});
    manifest.bindings.push_back(bind(model, shards, d));
  }
  return manifest;
}

json makeManifest(const Model &model, const std::vector<ShardPlace> &shards,
                  int devices) {
  return json::parse(writeManifest(describe(model, shards, devices)));
}

namespace {

bool slotIsWeighted(const Model &model, const json &binding, size_t slot) {
  for (const json &entry : binding["lookups"])
    if (entry[2] == slot && model.exchanges[entry[0]]
                                .lookups[static_cast<size_t>(entry[1])]
                                .weighted)
      return true;
  return false;
}

/// Some rows of the shard's table are cut by columns.
bool isColumnSplit(const Model &model, const json &shards, const json &shard) {
  for (const json &other : shards)
    if (other["table"] == shard["table"] &&
        static_cast<int64_t>(other["cols"][1]) -
                static_cast<int64_t>(other["cols"][0]) <
            model.tables[static_cast<size_t>(shard["table"])].dim)
      return true;
  return false;
}

nsrt_slot_entry makeSlot(const Model &model, const json &shards,
                         const json &shard, bool weighted) {
  const Table &table = model.tables[static_cast<size_t>(shard["table"])];
  int dim =
      static_cast<int>(shard["cols"][1]) - static_cast<int>(shard["cols"][0]);
  nsrt_slot_entry slot = {};
  slot.dim = dim;
  slot.row_bytes = dim * (table.type == Element::F32 ? 4 : 2);
  slot.weighted = weighted;
  if (table.frozen)
    return slot;
  slot.state_elements = model.optimizer == Optimizer::Adam      ? 2
                        : model.optimizer == Optimizer::Adagrad ? 1
                                                                : 0;
  slot.state_rows = model.optimizer == Optimizer::RowwiseAdagrad;
  bool twoPhase =
      model.exact && slot.state_rows && isColumnSplit(model, shards, shard);
  if (twoPhase) {
    slot.reduce = reduceKernel(dim, weighted);
    slot.apply = applyKernel(dim, static_cast<int>(table.dim), table.type);
  } else {
    slot.update = updateKernel(dim, table.type, model.optimizer, weighted);
  }
  return slot;
}

nsrt_lookup_entry makeLookup(const Model &model, const json &shards,
                             const json &binding, const json &entry,
                             size_t numDevices) {
  const Exchange &exchange = model.exchanges[static_cast<size_t>(entry[0])];
  const Lookup &lookup = exchange.lookups[static_cast<size_t>(entry[1])];
  const json &shard = shards[static_cast<size_t>(
      binding["slots"][static_cast<size_t>(entry[2])])];
  int dim =
      static_cast<int>(shard["cols"][1]) - static_cast<int>(shard["cols"][0]);
  Element type = model.tables[static_cast<size_t>(lookup.table)].type;
  bool pooled = lookup.pooling != Pool::None;
  // Ids are packed as i32 for several devices.
  int idBytes = numDevices > 1 ? 4 : exchange.idBytes;
  return {static_cast<int32_t>(entry[2]),
          idBytes,
          pooled,
          lookup.weighted,
          forwardKernel(dim, type, idBytes, pooled, lookup.weighted),
          lookup.weighted ? weightGradientKernel(dim, type, idBytes) : nullptr};
}

} // namespace

Programs makePrograms(const Model &model, const json &manifest) {
  Programs programs;
  for (const json &binding : manifest["bindings"]) {
    auto program = std::make_unique<Programs::Program>();
    for (size_t slot = 0; slot < binding["slots"].size(); ++slot)
      program->slots.push_back(makeSlot(
          model, manifest["shards"],
          manifest["shards"][static_cast<size_t>(binding["slots"][slot])],
          slotIsWeighted(model, binding, slot)));
    for (const json &entry : binding["lookups"])
      program->lookups.push_back(makeLookup(model, manifest["shards"], binding,
                                            entry,
                                            manifest["bindings"].size()));
    program->program = {NSRT_PROGRAM_VERSION,
                        static_cast<int32_t>(program->slots.size()),
                        static_cast<int32_t>(program->lookups.size()),
                        0,
                        program->slots.data(),
                        program->lookups.data()};
    programs.pointers.push_back(&program->program);
    programs.all.push_back(std::move(program));
  }
  return programs;
}

} // namespace neuroshard::test
