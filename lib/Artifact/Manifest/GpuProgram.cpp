//===- GpuProgram.cpp - Record of a device program for GPUs ---------------===//
//
// Writes and reads the record, compares it with the manifest, chooses an image.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/GpuProgram.h"
#include "JsonValue.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace neuroshard {

namespace {

constexpr const char *document = "GPU program";
constexpr int32_t maxVariant = 1 << 20;
constexpr int32_t maxItems = 1 << 20;

/// Compute capability of "sm_90" as 90, or -1. What is made for one GPU alone,
/// such as "sm_90a", serves no other and is not counted.
int capabilityOf(const std::string &arch) {
  int capability = -1;
  if (!arch.starts_with("sm_"))
    return -1;
  const char *end = arch.data() + arch.size();
  auto result = std::from_chars(arch.data() + 3, end, capability);
  return result.ec == std::errc() && result.ptr == end ? capability : -1;
}

ElementType readOutputType(const JsonValue &value) {
  return value.oneOfNames(
      {ElementType::F32, ElementType::F16, ElementType::BF16},
      [](ElementType type) { return toString(type); });
}

int32_t readVariant(const JsonValue &value) {
  return static_cast<int32_t>(value.integer(-1, maxVariant));
}

GpuImageFile readImage(const JsonValue &value) {
  GpuImageFile image{value["arch"].text(), value["file"].text()};
  if (image.arch != "ptx" && !image.arch.starts_with("sm_"))
    value["arch"].wrong("\"ptx\" or \"sm_\" and a compute capability");
  return image;
}

GpuLookup readLookup(const JsonValue &value, size_t numSlots) {
  GpuLookup lookup;
  lookup.slot = value["slot"].index(numSlots);
  lookup.idBytes = static_cast<int32_t>(value["id_bytes"].integer(4, 8));
  if (lookup.idBytes != 4 && lookup.idBytes != 8)
    value["id_bytes"].wrong("4 or 8");
  lookup.pooled = value["pooled"].boolean();
  lookup.weighted = value["weighted"].boolean();
  lookup.output = readOutputType(value["output"]);
  lookup.variant =
      static_cast<int32_t>(value["variant"].integer(0, maxVariant));
  lookup.meanVariant = readVariant(value["mean_variant"]);
  lookup.fixedVariant = readVariant(value["fixed_variant"]);
  lookup.fixedMeanVariant = readVariant(value["fixed_mean_variant"]);
  lookup.itemsPerBlock =
      static_cast<int32_t>(value["items_per_block"].integer(1, maxItems));
  lookup.gradientVariant = readVariant(value["gradient_variant"]);
  int64_t least = lookup.gradientVariant >= 0 ? 1 : 0;
  lookup.gradientItemsPerBlock = static_cast<int32_t>(
      value["gradient_items_per_block"].integer(least, maxItems));
  return lookup;
}

GpuSlot readSlot(const JsonValue &value) {
  GpuSlot slot;
  slot.dim = value["dim"].integer(1, maxItems);
  slot.element = readOutputType(value["element"]);
  slot.elementStates =
      static_cast<int32_t>(value["state_elements"].integer(0, kMaxStates));
  slot.rowStates =
      static_cast<int32_t>(value["state_rows"].integer(0, kMaxStates));
  slot.twoPhase = value["two_phase"].boolean();
  slot.updateVariant = readVariant(value["update_variant"]);
  slot.reduceVariant = readVariant(value["reduce_variant"]);
  slot.applyVariant = readVariant(value["apply_variant"]);
  slot.partialVariant = readVariant(value["partial_variant"]);
  slot.rowSumsVariant = readVariant(value["row_sums_variant"]);
  slot.sumsUpdateVariant = readVariant(value["sums_update_variant"]);
  slot.distinctSumsVariant = readVariant(value["distinct_sums_variant"]);
  if (slot.elementStates + slot.rowStates > kMaxStates)
    value["state_rows"].wrong("at most " + std::to_string(kMaxStates) +
                              " states in all");
  bool reduces = slot.reduceVariant >= 0;
  if (reduces != (slot.applyVariant >= 0) || (!slot.twoPhase && reduces) ||
      (slot.twoPhase && slot.updateVariant >= 0))
    value["two_phase"].wrong("an update_variant without two_phase, or a "
                             "reduce_variant and an apply_variant with it");
  bool bySums = slot.rowSumsVariant >= 0;
  if (bySums != (slot.sumsUpdateVariant >= 0) ||
      (bySums && slot.updateVariant < 0))
    value["row_sums_variant"].wrong(
        "-1, or a sums_update_variant and an update_variant with it");
  return slot;
}

using Json = nlohmann::ordered_json;

Json imageJson(const GpuImageFile &image) {
  Json json = Json::object();
  if (!image.arch.empty())
    json["arch"] = image.arch;
  json["file"] = image.file;
  return json;
}

Json lookupJson(const GpuLookup &lookup) {
  return {{"slot", lookup.slot},
          {"id_bytes", lookup.idBytes},
          {"pooled", lookup.pooled},
          {"weighted", lookup.weighted},
          {"output", toString(lookup.output)},
          {"variant", lookup.variant},
          {"mean_variant", lookup.meanVariant},
          {"fixed_variant", lookup.fixedVariant},
          {"fixed_mean_variant", lookup.fixedMeanVariant},
          {"items_per_block", lookup.itemsPerBlock},
          {"gradient_variant", lookup.gradientVariant},
          {"gradient_items_per_block", lookup.gradientItemsPerBlock}};
}

Json slotJson(const GpuSlot &slot) {
  return {{"dim", slot.dim},
          {"element", toString(slot.element)},
          {"state_elements", slot.elementStates},
          {"state_rows", slot.rowStates},
          {"two_phase", slot.twoPhase},
          {"update_variant", slot.updateVariant},
          {"reduce_variant", slot.reduceVariant},
          {"apply_variant", slot.applyVariant},
          {"partial_variant", slot.partialVariant},
          {"row_sums_variant", slot.rowSumsVariant},
          {"sums_update_variant", slot.sumsUpdateVariant},
          {"distinct_sums_variant", slot.distinctSumsVariant}};
}

/// Whatever has a variant needs its kernel; all programs route.
void checkKernels(const GpuProgram &program) {
  auto need = [&](bool needed, const char *kernel,
                  const char *reason = "there are variants of it") {
    if (needed && !program.hasKernel(kernel))
      fail(document, ": $.kernels: expected \"", kernel, "\", as ", reason,
           ", found none");
  };
  auto needBody = [&](const char *kernel, int32_t variant) {
    if (variant >= 0)
      need(true, nameOfBody(kernel, variant).c_str(), "a slot has this body");
  };
  bool updates = false, gradient = false;
  for (const GpuSlot &slot : program.slots) {
    updates |= slot.trainable();
    needBody(kUpdateKernel, slot.updateVariant);
    needBody(kReduceKernel, slot.reduceVariant);
    needBody(kReduceKernel, slot.rowSumsVariant);
    needBody(kReduceKernel, slot.distinctSumsVariant);
    needBody(kApplyKernel, slot.applyVariant);
    needBody(kUpdateBySumsKernel, slot.sumsUpdateVariant);
  }
  for (const GpuLookup &lookup : program.lookups)
    gradient |= lookup.gradientVariant >= 0;
  need(!program.lookups.empty(), "nsg_lookup");
  need(gradient, "nsg_weight_gradient");
  bool training = !program.lookups.empty() && (updates || gradient);
  need(training, "nsg_expand");
  need(training && updates, "nsg_ranges");
  need(training && updates, "nsg_find_places");
  need(training && updates, "nsg_partials");
  for (const char *kernel : kRoutingKernels)
    need(true, kernel, "all programs have it");
}

/// A field of the document beside what the manifest asks for.
template <typename T>
void expect(const std::string &path, const char *field, const T &expected,
            const T &found) {
  if (expected != found)
    fail(document, ": ", path, ".", field, ": expected ", expected,
         " as in the manifest, found ", found);
}

std::string indexed(const char *list, size_t index) {
  return std::string("$.").append(list).append("[") + std::to_string(index) +
         "]";
}

void checkCount(const char *list, size_t expected, size_t found) {
  if (expected != found)
    fail(document, ": $.", list, ": expected ", expected, " ", list,
         " as in the manifest, found ", found);
}

} // namespace

std::string nameOfBody(const std::string &kernel, int64_t variant) {
  return kernel + "_" + std::to_string(variant);
}

bool GpuProgram::hasKernel(const std::string &name) const {
  return std::find(kernels.begin(), kernels.end(), name) != kernels.end();
}

bool GpuProgram::hasFactors() const {
  return std::any_of(
      lookups.begin(), lookups.end(),
      [](const GpuLookup &lookup) { return lookup.weighted || lookup.mean; });
}

std::string writeGpuProgram(const GpuProgram &program) {
  Json images = Json::array(), lookups = Json::array(), slots = Json::array();
  for (const GpuImageFile &image : program.images)
    images.push_back(imageJson(image));
  for (const GpuLookup &lookup : program.lookups)
    lookups.push_back(lookupJson(lookup));
  for (const GpuSlot &slot : program.slots)
    slots.push_back(slotJson(slot));
  Json json = {{"schema", kGpuProgramSchema},
               {"abi", NSG_VERSION},
               {"module", program.module},
               {"images", images},
               {"kernels", program.kernels},
               {"lookups", lookups},
               {"slots", slots}};
  if (program.emulated)
    json["emulated"] = imageJson(*program.emulated);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

GpuProgram parseGpuProgram(const std::string &text) {
  nlohmann::json json = parseJson(text, document);
  JsonValue root(json, document);
  root["schema"].oneOf<bool>({{kGpuProgramSchema, true}});
  int64_t abi = root["abi"].integer(0, std::numeric_limits<int32_t>::max());
  if (abi != NSG_VERSION)
    root["abi"].wrong("version " + std::to_string(NSG_VERSION) +
                      " of the kernels' interface; compile the model again");
  GpuProgram program;
  program.module = root["module"].text();
  program.images = root["images"].list(readImage);
  if (root.has("emulated"))
    program.emulated = {"", root["emulated"]["file"].text()};
  program.kernels =
      root["kernels"].list([](const JsonValue &item) { return item.text(); });
  program.slots = root["slots"].list(readSlot);
  program.lookups = root["lookups"].list([&](const JsonValue &item) {
    return readLookup(item, program.slots.size());
  });
  checkKernels(program);
  return program;
}

void checkGpuProgram(const GpuProgram &program, const Manifest &manifest,
                     int32_t device) {
  const DeviceBinding &binding = manifest.bindings[static_cast<size_t>(device)];
  checkCount("slots", binding.slots.size(), program.slots.size());
  checkCount("lookups", binding.lookups.size(), program.lookups.size());
  std::vector<bool> withNormExchange = manifest.tablesWithNormExchange();
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const ShardSpec &shard =
        manifest.shards[static_cast<size_t>(binding.slots[i])];
    const TableSpec &table = manifest.tableOf(shard);
    const GpuSlot &slot = program.slots[i];
    std::string path = indexed("slots", i);
    expect(path, "dim", shard.cols.size(), slot.dim);
    expect(path, "element", static_cast<int32_t>(table.elementType),
           static_cast<int32_t>(slot.element));
    expect(path, "state_elements",
           static_cast<int32_t>(table.states().perElement), slot.elementStates);
    expect(path, "state_rows", static_cast<int32_t>(table.states().perRow),
           slot.rowStates);
    bool exchanges = withNormExchange[static_cast<size_t>(shard.table)];
    if (slot.trainable() && slot.twoPhase != exchanges)
      expect(path, "two_phase", exchanges, slot.twoPhase);
    if (slot.trainable() && manifest.isCopied(shard) && !shard.copiesDrift() &&
        slot.distinctSumsVariant < 0)
      fail(
          document, ": ", path,
          ".distinct_sums_variant: expected a body, as the manifest's shard \"",
          shard.name, "\" has copies, found none");
  }
  for (size_t i = 0; i < program.lookups.size(); ++i) {
    const LookupBinding &bound = binding.lookups[i];
    const ExchangeSpec &exchange =
        manifest.exchanges[static_cast<size_t>(bound.exchange)];
    const ExchangeLookup &spec =
        exchange.lookups[static_cast<size_t>(bound.lookup)];
    const GpuLookup &lookup = program.lookups[i];
    std::string path = indexed("lookups", i);
    expect(path, "slot", bound.slot, lookup.slot);
    expect(path, "id_bytes", manifest.packedIdBytes(exchange), lookup.idBytes);
    expect(path, "pooled", spec.pooled(), lookup.pooled);
    expect(path, "weighted", spec.weighted, lookup.weighted);
  }
}

void bindMeans(GpuProgram &program, const Manifest &manifest, int32_t device) {
  const DeviceBinding &binding = manifest.bindings[static_cast<size_t>(device)];
  for (size_t i = 0; i < program.lookups.size(); ++i) {
    const LookupBinding &bound = binding.lookups[i];
    const ExchangeLookup &lookup =
        manifest.exchanges[static_cast<size_t>(bound.exchange)]
            .lookups[static_cast<size_t>(bound.lookup)];
    const ShardSpec &shard = manifest.shards[static_cast<size_t>(
        binding.slots[static_cast<size_t>(bound.slot)])];
    bool hasAllRows = shard.rows.size() == manifest.tableOf(shard).rows;
    program.lookups[i].mean = lookup.pooling == Pooling::Mean && hasAllRows;
    if (program.lookups[i].variantFor(/*fixed=*/false) < 0)
      fail(document, ": ", indexed("lookups", i),
           ".mean_variant: expected a body, as the manifest's lookup is a "
           "mean, found none");
  }
}

const GpuImageFile &chooseImage(const GpuProgram &program, int capability) {
  const GpuImageFile *best = nullptr;
  const GpuImageFile *ptx = nullptr;
  std::string there;
  for (const GpuImageFile &image : program.images) {
    there += (there.empty() ? "" : ", ") + image.arch;
    if (image.arch == "ptx")
      ptx = &image;
    int made = capabilityOf(image.arch);
    if (made / 10 == capability / 10 && made <= capability &&
        (!best || made > capabilityOf(best->arch)))
      best = &image;
  }
  if (!best)
    best = ptx;
  if (!best)
    fail("the program has no image for this GPU (sm_", capability,
         "); it has: ", there.empty() ? "none" : there,
         "; compile the model with --gpu sm_", capability);
  return *best;
}

} // namespace neuroshard
