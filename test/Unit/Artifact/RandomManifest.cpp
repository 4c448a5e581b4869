//===- RandomManifest.cpp - Random models and plans -----------------------===//

#include "RandomManifest.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace neuroshard::test {
namespace {

class Maker {
public:
  explicit Maker(std::mt19937 &random) : random(random) {}

  Manifest make() {
    manifest.targetCpu = "x86-64-v3";
    manifest.targetFeatures = {"avx2", "fma"};
    manifest.numDevices = 1 << below(4);
    manifest.optimizerSemantics =
        below(2) ? OptimizerSemantics::Exact : OptimizerSemantics::PerShard;
    manifest.wireType = WireType(format(), format());
    addGroups();
    for (int64_t i = 1 + below(4); i > 0; --i)
      addTable();
    for (int64_t i = 1 + below(2); i > 0; --i)
      addExchange();
    for (size_t table = 0; table < manifest.tables.size(); ++table)
      addShards(static_cast<int32_t>(table));
    for (int32_t device = 0; device < manifest.numDevices; ++device)
      bind(device);
    addFunctions();
    return std::move(manifest);
  }

private:
  int64_t below(int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  }
  ElementType type() { return static_cast<ElementType>(below(3)); }
  WireFormat format() { return kWireFormats[below(5)]; }
  static std::string named(const char *name, size_t number) {
    return name + std::to_string(number);
  }

  void addGroups() {
    if (manifest.numDevices < 4 || below(2))
      return;
    std::vector<int32_t> devices(static_cast<size_t>(manifest.numDevices));
    std::iota(devices.begin(), devices.end(), 0);
    std::shuffle(devices.begin(), devices.end(), random);
    for (size_t i = 0; i < devices.size(); i += 2)
      manifest.groups.push_back({devices[i], devices[i + 1]});
  }

  Optimizer optimizer(ElementType weights) {
    auto kinds = static_cast<int64_t>(kOptimizers.size());
    Optimizer result{.kind = static_cast<OptimizerKind>(below(kinds)),
                     .weightDecay = 1e-3};
    const OptimizerProperties &known = propertiesOf(result.kind);
    result.eps = known.hasEps ? 0.1 : result.eps;
    result.beta1 = known.hasBeta1 ? 0.875 : result.beta1;
    result.beta2 = known.hasBeta2 ? 0.3 : result.beta2;
    result.initialAccumulator = known.accumulates ? 0.25 : 0;
    if (below(2))
      result.weightDecayMode = known.isOneWeightDecayMode
                                   ? known.weightDecayMode
                                   : WeightDecayMode::Decoupled;
    result.stochasticRounding = weights != ElementType::F32 && below(2);
    result.maxGradient = static_cast<double>(below(2));
    if (known.hasPenalties)
      result.l1Penalty = 0.125;
    if (known.hasEta)
      result.eta = 0.0625;
    if (known.hasCounters) {
      result.counterHalflife = 2.5;
      result.adjustmentIter = static_cast<double>(below(3) - 1);
      result.adjustmentUb = 0.5;
    }
    return result;
  }

  void addTable() {
    TableSpec table;
    table.name = named("t\"able ", manifest.tables.size());
    table.rows = 8 + below(1000);
    table.dim = 4 * (1 + below(8)) + below(2);
    table.elementType = type();
    if (below(5))
      table.optimizer = optimizer(table.elementType);
    manifest.tables.push_back(table);
  }

  void addExchange() {
    ExchangeSpec exchange;
    exchange.input = named("input", manifest.exchanges.size());
    exchange.idType = below(2) ? IdType::I64 : IdType::I32;
    exchange.weighted = below(2);
    for (size_t table = 0; table < manifest.tables.size(); ++table)
      for (int64_t i = below(3); i > 0; --i) {
        ExchangeLookup lookup;
        lookup.table = static_cast<int32_t>(table);
        lookup.feature = static_cast<int32_t>(exchange.features.size());
        lookup.pooling = static_cast<Pooling>(below(3));
        lookup.weighted = exchange.weighted && lookup.pooled() && below(2);
        if (below(4) == 0)
          lookup.paddingIdx = below(manifest.tables[table].rows);
        lookup.resultType = type();
        exchange.lookups.push_back(lookup);
        exchange.features.push_back(named("f", exchange.features.size()));
      }
    exchange.features.push_back("unread");
    manifest.exchanges.push_back(exchange);
  }

  void addShard(int32_t table, Range rows, Range cols,
                std::vector<int32_t> devices) {
    manifest.shards.push_back({named("shard", manifest.shards.size()), table,
                               rows, cols, std::move(devices)});
  }

  void addShards(int32_t table) {
    const TableSpec &spec = manifest.tables[static_cast<size_t>(table)];
    if (below(5) == 0) {
      std::vector<int32_t> all(static_cast<size_t>(manifest.numDevices));
      std::iota(all.begin(), all.end(), 0);
      return addShard(table, {0, spec.rows}, {0, spec.dim}, all);
    }
    for (const Range &rows : randomCuts(random, spec.rows, 1, 1 + below(4)))
      for (const Range &cols : randomCuts(random, spec.dim, 4, 1 + below(3)))
        addShard(table, rows, cols,
                 {static_cast<int32_t>(below(manifest.numDevices))});
  }

  void bind(int32_t device) {
    DeviceBinding binding;
    binding.program = static_cast<int32_t>(manifest.programs.size());
    manifest.programs.push_back(
        {named("program", manifest.programs.size()) + ".so"});
    if (below(2))
      manifest.files[manifest.programs.back().library] =
          "0123456789abcdef0123456789abcdef";
    for (size_t s = 0; s < manifest.shards.size(); ++s) {
      const ShardSpec &shard = manifest.shards[s];
      if (std::find(shard.devices.begin(), shard.devices.end(), device) ==
          shard.devices.end())
        continue;
      auto slot = static_cast<int32_t>(binding.slots.size());
      binding.slots.push_back(static_cast<int32_t>(s));
      for (size_t x = 0; x < manifest.exchanges.size(); ++x)
        for (size_t k = 0; k < manifest.exchanges[x].lookups.size(); ++k)
          if (manifest.exchanges[x].lookups[k].table == shard.table)
            binding.lookups.push_back(
                {static_cast<int32_t>(x), static_cast<int32_t>(k), slot});
    }
    manifest.bindings.push_back(std::move(binding));
  }

  void addFunctions() {
    ValueSpec device, handle, scalar, tensor, jagged, weights, state;
    handle.kind = ValueKind::Handle;
    scalar.kind = ValueKind::Scalar;
    scalar.type = "i64";
    tensor.kind = ValueKind::Tensor;
    tensor.type = "f32";
    tensor.shape = {-1, 3};
    jagged.kind = ValueKind::Jagged;
    jagged.type = "i32";
    jagged.weighted = true;
    jagged.features = {"a", "b"};
    const TableSpec &table = manifest.tables[0];
    weights.kind = ValueKind::Weights;
    weights.type = toString(table.elementType);
    weights.shape = {table.rows, table.dim};
    state = weights;
    state.kind = ValueKind::State;
    state.type = "f32";
    manifest.functions = {{"forward", {device, jagged, tensor}, {handle}}};
    const ExchangeSpec &exchange = manifest.exchanges[0];
    jagged.exchange = 0;
    jagged.type = toString(exchange.idType);
    jagged.weighted = exchange.weighted;
    jagged.features = exchange.features;
    manifest.functions.push_back({"update", {device, scalar, jagged}, {}});
    if (!below(2))
      return;
    manifest.reference = {"reference.so",
                          {{"other", {jagged, weights}, {tensor}}}};
    if (table.states().count() > 0)
      manifest.reference->functions[0].arguments.push_back(state);
  }

  std::mt19937 &random;
  Manifest manifest;
};

} // namespace

std::vector<Range> randomCuts(std::mt19937 &random, int64_t size, int64_t step,
                              int64_t count) {
  std::set<int64_t> cuts = {0, size};
  for (int64_t i = 1; i < count; ++i) {
    auto cut = static_cast<int64_t>(random() % static_cast<uint64_t>(size));
    cuts.insert(cut / step * step);
  }
  std::vector<Range> ranges;
  for (auto it = cuts.begin(); std::next(it) != cuts.end(); ++it)
    ranges.push_back({*it, *std::next(it)});
  return ranges;
}

Manifest randomManifest(std::mt19937 &random) { return Maker(random).make(); }

} // namespace neuroshard::test
