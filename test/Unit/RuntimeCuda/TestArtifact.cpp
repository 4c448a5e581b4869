//===- TestArtifact.cpp - Artifacts for the fake driver -------------------===//
//
// Writes manifest.json, program<d>.gpu.json and an image.
//
//===----------------------------------------------------------------------===//

#include "TestArtifact.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <cstdlib>
#include <fstream>

using nlohmann::json;

namespace neuroshard::test {
namespace {

std::string numbered(const char *name, int64_t number) {
  return std::string(name).append(std::to_string(number));
}

json optimizerOf(Rule rule) {
  if (rule == Rule::None)
    return nullptr;
  if (rule == Rule::Sgd)
    return {{"kind", "sgd"}};
  return {{"kind", "rowwise_adagrad"}, {"initial_accumulator", 1.0}};
}

const char *textOf(Bags bags) {
  return bags == Bags::Sum ? "sum" : bags == Bags::Mean ? "mean" : "none";
}

} // namespace

void Model::placeWhole() {
  shards.clear();
  for (size_t i = 0; i < tables.size(); ++i)
    shards.push_back({int32_t(i), 0, tables[i].rows, 0, tables[i].dim, 0});
}

std::vector<int32_t> Model::slotsOf(int32_t device) const {
  std::vector<int32_t> slots;
  for (size_t i = 0; i < shards.size(); ++i)
    if (shards[i].device == device)
      slots.push_back(int32_t(i));
  return slots;
}

std::vector<Bound> Model::lookupsOf(int32_t device) const {
  std::vector<Bound> bound;
  std::vector<int32_t> slots = slotsOf(device);
  for (size_t x = 0; x < exchanges.size(); ++x)
    for (size_t k = 0; k < exchanges[x].lookups.size(); ++k)
      for (size_t s = 0; s < slots.size(); ++s)
        if (shards[size_t(slots[s])].table == exchanges[x].lookups[k].table)
          bound.push_back({int32_t(x), int32_t(k), int32_t(s)});
  return bound;
}

bool Model::splitsColumns(int32_t table) const {
  for (const ShardText &shard : shards)
    if (shard.table == table &&
        shard.colEnd - shard.colBegin < tables[size_t(table)].dim)
      return true;
  return false;
}

json Model::manifest() const {
  json root = {{"schema", "neuroshard.manifest/1"},
               {"devices", devices},
               {"optimizer_semantics", "exact"}};
  root["tables"] = json::array();
  for (size_t i = 0; i < tables.size(); ++i)
    root["tables"].push_back({{"name", numbered("t", int64_t(i))},
                              {"rows", tables[i].rows},
                              {"dim", tables[i].dim},
                              {"element_type", "f32"},
                              {"optimizer", optimizerOf(tables[i].rule)}});
  root["exchanges"] = json::array();
  for (size_t x = 0; x < exchanges.size(); ++x) {
    json features = json::array(), lookups = json::array();
    for (int32_t f = 0; f < exchanges[x].features; ++f)
      features.push_back(numbered("f", f));
    for (const LookupText &lookup : exchanges[x].lookups)
      lookups.push_back({{"table", lookup.table},
                         {"feature", lookup.feature},
                         {"pooling", textOf(lookup.bags)},
                         {"weighted", lookup.weighted},
                         {"padding_idx", nullptr},
                         {"result_type", "f32"}});
    root["exchanges"].push_back(
        {{"input", numbered("input", int64_t(x))},
         {"id_type", exchanges[x].idBytes == 8 ? "i64" : "i32"},
         {"weighted", exchanges[x].weighted},
         {"features", features},
         {"lookups", lookups}});
  }
  root["shards"] = json::array();
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardText &shard = shards[i];
    root["shards"].push_back({{"name", numbered("s", int64_t(i))},
                              {"table", shard.table},
                              {"rows", {shard.rowBegin, shard.rowEnd}},
                              {"cols", {shard.colBegin, shard.colEnd}},
                              {"devices", {shard.device}}});
  }
  root["programs"] = json::array();
  root["bindings"] = json::array();
  for (int32_t d = 0; d < devices; ++d) {
    root["programs"].push_back({{"library", numbered("program", d) + ".so"}});
    json lookups = json::array();
    for (const Bound &bound : lookupsOf(d))
      lookups.push_back({bound.exchange, bound.lookup, bound.slot});
    root["bindings"].push_back(
        {{"program", d}, {"slots", slotsOf(d)}, {"lookups", lookups}});
  }
  return root;
}

json Model::program(int32_t device, fake::State &state) const {
  json lookups = json::array(), slots = json::array();
  std::vector<int32_t> local = slotsOf(device);
  bool updates = false, reduces = false, small = false, gradients = false;
  for (const Bound &bound : lookupsOf(device)) {
    const ExchangeText &exchange = exchanges[size_t(bound.exchange)];
    const LookupText &lookup = exchange.lookups[size_t(bound.lookup)];
    const ShardText &shard = shards[size_t(local[size_t(bound.slot)])];
    bool pooled = lookup.bags != Bags::None;
    fake::LookupBody body = {shard.colEnd - shard.colBegin,
                             pooled,
                             false,
                             lookup.weighted,
                             false,
                             exchange.idBytes,
                             itemsPerBlock};
    // A sum, then a mean; then both for bags of a fixed size.
    int32_t variant = int32_t(state.lookups.size());
    for (bool fixed : {false, true})
      for (bool mean : {false, true}) {
        body.fixed = fixed;
        body.mean = mean;
        state.lookups.push_back(body);
      }
    gradients |= lookup.weighted;
    lookups.push_back(
        {{"slot", bound.slot},
         {"id_bytes", exchange.idBytes},
         {"pooled", pooled},
         {"weighted", body.weighted},
         {"output", "f32"},
         {"variant", variant},
         {"mean_variant", pooled ? variant + 1 : -1},
         {"fixed_variant", pooled ? variant + 2 : -1},
         {"fixed_mean_variant", pooled ? variant + 3 : -1},
         {"items_per_block", itemsPerBlock},
         {"gradient_variant", lookup.weighted ? variant : -1},
         {"gradient_items_per_block", lookup.weighted ? itemsPerBlock : 0}});
  }
  for (int32_t index : local) {
    const ShardText &shard = shards[size_t(index)];
    const TableText &table = tables[size_t(shard.table)];
    bool rowwise = table.rule == Rule::RowwiseAdagrad;
    bool twoPhase = rowwise && splitsColumns(shard.table);
    // The fake's only update is SGD; its row-wise rule has two phases.
    bool few = shard.rowEnd - shard.rowBegin <= smallRows;
    bool updated = table.rule == Rule::Sgd && !few;
    bool updatedSmall = table.rule == Rule::Sgd && few;
    int32_t variant = int32_t(state.updates.size());
    state.updates.push_back({shard.colEnd - shard.colBegin, table.dim});
    updates |= updated;
    small |= updatedSmall;
    reduces |= twoPhase;
    slots.push_back({{"dim", shard.colEnd - shard.colBegin},
                     {"element", "f32"},
                     {"state_elements", 0},
                     {"state_rows", rowwise ? 1 : 0},
                     {"two_phase", twoPhase},
                     {"update_variant", updated ? variant : -1},
                     {"reduce_variant", twoPhase ? variant : -1},
                     {"apply_variant", twoPhase ? variant : -1},
                     {"partial_variant", variant},
                     {"small_sums_variant", updatedSmall ? variant : -1},
                     {"small_update_variant", updatedSmall ? variant : -1}});
  }
  json kernels = json::array({"nsg_lookup"});
  if (updates || reduces || small || gradients)
    kernels.push_back("nsg_expand");
  if (updates || reduces)
    kernels.insert(kernels.end(), {"nsg_ranges", "nsg_partials"});
  if (small)
    kernels.insert(kernels.end(),
                   {"nsg_small_order", "nsg_small_sums", "nsg_small_update"});
  if (updates)
    kernels.push_back("nsg_update");
  if (reduces)
    kernels.insert(kernels.end(), {"nsg_reduce", "nsg_apply"});
  if (gradients)
    kernels.push_back("nsg_weight_gradient");
  return {{"schema", "neuroshard.gpu_program/1"},
          {"abi", NSG_VERSION},
          {"module", "0123"},
          {"images",
           {{{"arch", "sm_80"}, {"file", "old.cubin"}, {"xxh3", ""}},
            {{"arch", "sm_90"}, {"file", "new.cubin"}, {"xxh3", ""}},
            {{"arch", "ptx"}, {"file", "any.ptx"}, {"xxh3", ""}}}},
          {"kernels", kernels},
          {"lookups", lookups},
          {"slots", slots}};
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
  json manifest = read("manifest.json");
  for (size_t i = 0; i < manifest["programs"].size(); ++i) {
    std::string file = numbered("program", int64_t(i)) + ".gpu.json";
    json program = read(file);
    for (json &image : program["images"])
      image["xxh3"] = hashOfFile(image["file"]);
    write(file, program.dump());
    manifest["programs"][i]["gpu_xxh3"] = hashOfFile(file);
  }
  write("manifest.json", manifest.dump());
}

std::string Artifact::hashOfFile(const std::string &file) const {
  return cuda::hashOf(cuda::readFile(folder / file));
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
