//===- TestArtifact.cpp - Artifacts for the fake driver -------------------===//
//
// Writes manifest.json, program<d>.gpu.json and an image.
//
//===----------------------------------------------------------------------===//

#include "TestArtifact.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/GpuProgram.h"
#include "neuroshard/Artifact/Manifest.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

using nlohmann::json;

namespace neuroshard::test {
namespace {

std::string numbered(const char *name, int64_t number) {
  return std::string(name).append(std::to_string(number));
}

std::optional<Optimizer> optimizerOf(Rule rule) {
  if (rule == Rule::None)
    return std::nullopt;
  Optimizer optimizer;
  if (rule == Rule::RowwiseAdagrad) {
    optimizer.kind = OptimizerKind::RowWiseAdagrad;
    optimizer.initialAccumulator = 1;
  }
  return optimizer;
}

} // namespace

void Model::placeWhole() {
  shards.clear();
  for (size_t i = 0; i < tables.size(); ++i)
    shards.push_back(
        {static_cast<int32_t>(i), 0, tables[i].rows, 0, tables[i].dim, 0});
}

std::vector<int32_t> Model::slotsOf(int32_t device) const {
  std::vector<int32_t> slots;
  for (size_t i = 0; i < shards.size(); ++i)
    if (shards[i].device == device)
      slots.push_back(static_cast<int32_t>(i));
  return slots;
}

std::vector<Bound> Model::lookupsOf(int32_t device) const {
  std::vector<Bound> bound;
  std::vector<int32_t> slots = slotsOf(device);
  for (size_t x = 0; x < exchanges.size(); ++x)
    for (size_t k = 0; k < exchanges[x].lookups.size(); ++k)
      for (size_t s = 0; s < slots.size(); ++s)
        if (shards[static_cast<size_t>(slots[s])].table ==
            exchanges[x].lookups[k].table)
          bound.push_back({static_cast<int32_t>(x), static_cast<int32_t>(k),
                           static_cast<int32_t>(s)});
  return bound;
}

bool Model::splitsColumns(int32_t table) const {
  for (const ShardText &shard : shards)
    if (shard.table == table &&
        shard.colEnd - shard.colBegin < tables[static_cast<size_t>(table)].dim)
      return true;
  return false;
}

json Model::manifest() const {
  Manifest manifest;
  manifest.targetCpu = "generic";
  manifest.numDevices = devices;
  for (size_t i = 0; i < tables.size(); ++i)
    manifest.tables.push_back({numbered("t", static_cast<int64_t>(i)),
                               tables[i].rows, tables[i].dim, ElementType::F32,
                               optimizerOf(tables[i].rule)});
  for (size_t x = 0; x < exchanges.size(); ++x) {
    ExchangeSpec exchange;
    exchange.input = numbered("input", static_cast<int64_t>(x));
    exchange.idType = exchanges[x].idBytes == 8 ? IdType::I64 : IdType::I32;
    exchange.weighted = exchanges[x].weighted;
    for (int32_t f = 0; f < exchanges[x].features; ++f)
      exchange.features.push_back(numbered("f", f));
    for (const LookupText &lookup : exchanges[x].lookups)
      exchange.lookups.push_back(
          {lookup.table, lookup.feature, static_cast<Pooling>(lookup.bags),
           lookup.weighted, std::nullopt, ElementType::F32});
    manifest.exchanges.push_back(std::move(exchange));
  }
  for (const ShardText &shard : shards)
    manifest.shards.push_back(
        {numbered("s", static_cast<int64_t>(manifest.shards.size())),
         shard.table,
         {shard.rowBegin, shard.rowEnd},
         {shard.colBegin, shard.colEnd},
         {shard.device}});
  for (int32_t d = 0; d < devices; ++d) {
    manifest.programs.push_back({numbered("program", d) + ".so"});
    DeviceBinding binding{d, slotsOf(d), {}};
    for (const Bound &bound : lookupsOf(d))
      binding.lookups.push_back({bound.exchange, bound.lookup, bound.slot});
    manifest.bindings.push_back(std::move(binding));
  }
  return json::parse(writeManifest(manifest));
}

json Model::program(int32_t device, fake::State &state) const {
  GpuProgram program;
  std::vector<int32_t> local = slotsOf(device);
  bool trains = false, gradients = false;
  std::set<std::string> bodies;
  for (const Bound &bound : lookupsOf(device)) {
    const ExchangeText &exchange =
        exchanges[static_cast<size_t>(bound.exchange)];
    const LookupText &lookup =
        exchange.lookups[static_cast<size_t>(bound.lookup)];
    const ShardText &shard =
        shards[static_cast<size_t>(local[static_cast<size_t>(bound.slot)])];
    bool pooled = lookup.bags != Bags::None;
    fake::LookupBody body = {shard.colEnd - shard.colBegin,
                             pooled,
                             false,
                             lookup.weighted,
                             false,
                             kernelIdBytes(exchange),
                             itemsPerBlock};
    // A sum, then a mean; then both for bags of a fixed size.
    auto variant = static_cast<int32_t>(state.lookups.size());
    for (bool fixed : {false, true})
      for (bool mean : {false, true}) {
        body.fixed = fixed;
        body.mean = mean;
        state.lookups.push_back(body);
      }
    gradients |= lookup.weighted;
    GpuLookup entry;
    entry.slot = bound.slot;
    entry.idBytes = kernelIdBytes(exchange);
    entry.pooled = pooled;
    entry.weighted = body.weighted;
    entry.variant = variant;
    if (pooled) {
      entry.meanVariant = variant + 1;
      entry.fixedVariant = variant + 2;
      entry.fixedMeanVariant = variant + 3;
    }
    entry.itemsPerBlock = static_cast<int32_t>(itemsPerBlock);
    if (lookup.weighted) {
      entry.gradientVariant = variant;
      entry.gradientItemsPerBlock = static_cast<int32_t>(itemsPerBlock);
    }
    program.lookups.push_back(entry);
  }
  for (int32_t index : local) {
    const ShardText &shard = shards[static_cast<size_t>(index)];
    const TableText &table = tables[static_cast<size_t>(shard.table)];
    // The fake's only update is SGD; its row-wise rule has two phases.
    fake::UpdateBody body = {shard.colEnd - shard.colBegin, table.dim};
    auto found = std::find(state.updates.begin(), state.updates.end(), body);
    auto variant = static_cast<int32_t>(found - state.updates.begin());
    if (found == state.updates.end())
      state.updates.push_back(body);
    GpuSlot slot;
    slot.dim = shard.colEnd - shard.colBegin;
    slot.rowStates = table.rule == Rule::RowwiseAdagrad;
    slot.twoPhase = slot.rowStates && splitsColumns(shard.table);
    slot.partialVariant = variant;
    if (table.rule == Rule::Sgd)
      slot.updateVariant = variant;
    if (slot.twoPhase)
      slot.reduceVariant = slot.applyVariant = variant;
    if (slot.updateVariant >= 0)
      bodies.insert(nameOfBody(kUpdateKernel, variant));
    if (slot.twoPhase)
      bodies.merge(std::set{nameOfBody(kReduceKernel, variant),
                            nameOfBody(kApplyKernel, variant)});
    trains |= slot.trainable();
    program.slots.push_back(slot);
  }
  auto add = [&](bool needed, std::initializer_list<const char *> kernels) {
    if (needed)
      program.kernels.insert(program.kernels.end(), kernels.begin(),
                             kernels.end());
  };
  add(true, {"nsg_lookup"});
  for (const char *kernel : kRoutingKernels)
    program.kernels.push_back(kernel);
  add(trains || gradients, {"nsg_expand"});
  add(trains, {"nsg_ranges", "nsg_find_places", "nsg_partials"});
  program.kernels.insert(program.kernels.end(), bodies.begin(), bodies.end());
  add(gradients, {"nsg_weight_gradient"});
  program.module = "0123";
  program.images = {
      {"sm_80", "old.cubin"}, {"sm_90", "new.cubin"}, {"ptx", "any.ptx"}};
  return json::parse(writeGpuProgram(program));
}

Artifact::Artifact(const Model &model, fake::State &state) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "neuroshard-cuda-XXXXXX")
          .string();
  folder = mkdtemp(pattern.data());
  write("manifest.json", model.manifest().dump());
  for (int32_t d = 0; d < model.devices; ++d)
    write(numbered("program", d) + ".gpu.json", model.program(d, state).dump());
  for (const char *file : {"old.cubin", "new.cubin", "any.ptx"})
    write(file, std::string("image ").append(file));
  sign();
}

void Artifact::sign() const {
  json manifest = read(kManifestFile);
  manifest.erase("xxh3");
  manifest["files"] = json::object();
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (std::string file = entry.path().filename(); file != kManifestFile)
      manifest["files"][file] = hashOf(readFile(entry.path()));
  write(kManifestFile, sealManifest(manifest.dump()));
}

Artifact::~Artifact() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

void Artifact::write(const std::string &file, const std::string &text) const {
  std::ofstream(folder / file) << text;
}

json Artifact::read(const std::string &file) const {
  return json::parse(std::ifstream(folder / file));
}

} // namespace neuroshard::test
