//===- CudaBackend.cpp - A backend on the kernels of a GPU ----------------===//

#include "CudaBackend.h"
#include "CudaSums.h"
#include "CudaUpdate.h"
#include "Driver/Status.h"
#include "KernelParts.h"

#include <utility>

namespace neuroshard::cuda {

using namespace runtime;

namespace {

/// The binding as the schedule of a step asks for lookups: sums, which the
/// schedule divides, of rows counted from the first of their shard, and without
/// padding, which it has taken out.
Binding readSums(Binding binding) {
  for (size_t i = 0; i < binding.numLookups(); ++i) {
    GpuLookup &lookup = binding.program.lookups[i];
    if (lookup.output != ElementType::F32)
      fail(binding.nameOf(i), ": results are ", toString(lookup.output),
           "; compile the model with results of f32 on GPUs");
    lookup.mean = false;
  }
  for (ExchangeSpec &exchange : binding.manifest.exchanges)
    for (ExchangeLookup &lookup : exchange.lookups)
      lookup.paddingIdx.reset();
  for (ShardSpec &shard : binding.manifest.shards)
    shard.rows = {0, shard.rows.size()};
  return binding;
}

nsc_options optionsOf(const std::vector<nsc_slot_memory> &slots) {
  nsc_options options = {};
  options.num_slots = static_cast<int32_t>(slots.size());
  options.slots = slots.data();
  return options;
}

int64_t rowsOf(const LookupPart &part) {
  return part.ids.offsets ? part.ids.bags : part.ids.numIds;
}

} // namespace

CudaBackend::CudaBackend(std::shared_ptr<const Gpu> ownGpu,
                         const std::string &directory, int32_t rank,
                         IdCheck check, BackendParts parts)
    : holder(std::move(ownGpu)), gpu(*holder), buffers(parts.buffers),
      host(std::move(parts.host)) {
  std::vector<nsc_slot_memory> memory;
  for (const SlotMemory &slot : parts.slots)
    memory.push_back(
        {slot.weights, slot.states[0], slot.states[1], slot.states[2]});
  GpuScope scope(gpu);
  ownStream = std::make_unique<OwnStream>(gpu);
  stream = ownStream->get();
  Binding binding = readBinding(directory, rank);
  manifest = binding.manifest;
  // The host reads the ids of caches before kernels read rows.
  idCheck = manifest.hasRowCaches() ? IdCheck::Early : check;
  device = std::make_unique<Device>(
      gpu, directory, readSums(std::move(binding)), optionsOf(memory), idCheck);
  routing = std::make_unique<Routing>(gpu, device->kernels);
  packing = std::make_unique<PackingTools>(
      PackingTools{gpu, manifest, *routing, buffers, *host, {}});
  rowUploads = std::make_unique<UploadRing>(gpu);
  lateChecks = std::make_unique<LateChecks>(gpu, manifest, *routing);
  cachedRows = std::make_unique<CachedRows>(gpu, device->binding, *host);
  rowMover = std::make_unique<RowMover>(gpu, device->kernels,
                                        [this] { return stream; });
}

void CudaBackend::useStream(void *next) {
  auto following = static_cast<CUstream>(next);
  if (following == stream)
    return;
  GpuScope scope(gpu);
  // Neither a graph nor what follows it can wait for the other's events.
  if (!gpu.isCapturing(stream) && !gpu.isCapturing(following)) {
    Event before(gpu);
    before.record(stream);
    before.holdBack(following);
  }
  stream = following;
}

bool CudaBackend::isCapturing() const {
  GpuScope scope(gpu);
  return gpu.isCapturing(stream);
}

void CudaBackend::setStepSizes(std::span<const runtime::StepSize> ofSlot) {
  GpuScope scope(gpu);
  device->setStepSizes(ofSlot, stream);
}

void CudaBackend::finish() {
  GpuScope scope(gpu);
  gpu.waitForAll();
}

void CudaBackend::clear(std::byte *first, int64_t bytes) {
  if (bytes == 0)
    return;
  GpuScope scope(gpu);
  gpu.driver.check(
      gpu.driver.memsetD8Async(reinterpret_cast<CUdeviceptr>(first), 0,
                               static_cast<size_t>(bytes), stream),
      "clearing values");
}

void CudaBackend::copy(std::byte *to, const std::byte *from, int64_t bytes) {
  if (bytes == 0)
    return;
  GpuScope scope(gpu);
  gpu.driver.check(
      gpu.driver.memcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to),
                                 reinterpret_cast<CUdeviceptr>(from),
                                 static_cast<size_t>(bytes), stream),
      "copying values");
}

std::unique_ptr<IdPacker> CudaBackend::packIds(int32_t exchange,
                                               const JaggedInput &input,
                                               int64_t batch) {
  if (isCapturing())
    fail(manifest.exchanges[static_cast<size_t>(exchange)].where,
         "the host must know how many ids there are, which no CUDA graph can "
         "tell it: capture models whose ids are read in place, without shards "
         "in lower tiers");
  return std::make_unique<IdPacking>(*packing, exchange, input, batch, stream);
}

void CudaBackend::readInPlace(int32_t exchange, const JaggedInput &input,
                              int64_t *offsets, float *sizes) {
  GpuScope scope(gpu);
  lateChecks->trust(exchange, input, offsets, sizes, stream);
}

void CudaBackend::check() {
  finish();
  if (idCheck == IdCheck::Early)
    return;
  GpuScope scope(gpu);
  std::optional<std::string> offsets = lateChecks->take(stream);
  std::optional<std::string> id = device->check(stream);
  if (offsets || id)
    fail(offsets ? *offsets : *id);
}

std::unique_ptr<RowsInUse>
CudaBackend::fetchRows(std::span<const CachedLookup> lookups) {
  GpuScope scope(gpu);
  return cachedRows->fetch(lookups, stream);
}

void CudaBackend::addUp(std::span<const BagLengths> bags) {
  std::vector<nsg_bags> sets;
  for (const BagLengths &set : bags)
    sets.push_back({set.lengths, set.offsets, set.bags, nullptr});
  GpuScope scope(gpu);
  routing->addUp(sets, stream);
}

void CudaBackend::moveRows(std::span<const RowMove> moves) {
  GpuScope scope(gpu);
  routing->moveRows(moves, stream);
}

void CudaBackend::lookUp(std::span<const LookupPart> parts, bool) {
  RowStaging staging(device->binding, *this, buffers);
  std::vector<Part> lookups;
  std::vector<RowMove> moves;
  for (const LookupPart &part : parts) {
    int64_t rows = rowsOf(part);
    if (rows == 0)
      continue;
    Part &lookup = lookups.emplace_back(staging.partOf(part.lookup, part.ids));
    lookup.out = part.out;
    lookup.out_stride = part.stride;
    if (!part.divisors && staging.takes(part.lookup, part.out, part.stride))
      continue;
    KernelRows staged = staging.make(BufferKind::Partials, part.lookup, rows);
    lookup.out = staged.first;
    lookup.out_stride = staged.stride;
    RowMove &move = moves.emplace_back();
    move.source = {reinterpret_cast<const std::byte *>(staged.first),
                   staged.stride};
    move.target = {reinterpret_cast<std::byte *>(part.out), part.stride};
    move.rows = rows;
    move.width = staging.dimOf(part.lookup);
    move.divisors = part.divisors;
  }
  if (lookups.empty())
    return;
  GpuScope scope(gpu);
  device->forward(lookups, NSC_INFERENCE, stream);
  routing->moveRows(moves, stream);
}

std::unique_ptr<Update>
CudaBackend::prepareUpdate(std::vector<GradientPart> parts) {
  return std::make_unique<CudaUpdate>(*device, *this, buffers, stream, parts);
}

std::unique_ptr<DistinctSums>
CudaBackend::sumByRow(std::vector<GradientPart> parts) {
  return std::make_unique<CudaSums>(*device, *this, buffers, *rowUploads,
                                    stream, parts);
}

void CudaBackend::addUpRows(std::vector<GradientPart> parts,
                            std::span<const SlotSums> sums) {
  RowStaging staging(device->binding, *this, buffers);
  StagedGradients staged = staging.gradientsOf(parts);
  if (staged.parts.empty())
    return;
  GpuScope scope(gpu);
  device->addUpRows(staged.parts, staged.gradients, sums, stream);
}

void CudaBackend::updateRows(std::span<const SlotSums> sums,
                             std::span<const runtime::StepSize> stepSizes) {
  GpuScope scope(gpu);
  device->setStepSizes(stepSizes, stream);
  device->updateRows(sums, stream);
}

void CudaBackend::computeWeightGradients(
    std::span<const WeightGradientPart> parts) {
  RowStaging staging(device->binding, *this, buffers);
  std::vector<Part> lookups;
  std::vector<nsc_gradient> gradients;
  for (const WeightGradientPart &part : parts) {
    if (part.ids.numIds == 0)
      continue;
    KernelRows rows =
        staging.read(part.lookup, part.gradients, part.stride, part.ids.bags);
    lookups.push_back(staging.partOf(part.lookup, part.ids));
    gradients.push_back({rows.first, rows.stride, part.out});
  }
  if (lookups.empty())
    return;
  GpuScope scope(gpu);
  device->computeWeightGradients(lookups, gradients, stream);
}

void CudaBackend::addAtPlaces(std::span<const PlacedValues> values, float *out,
                              int64_t count, float divisor) {
  clear(reinterpret_cast<std::byte *>(out),
        count * static_cast<int64_t>(sizeof(float)));
  GpuScope scope(gpu);
  // One after the other: a place may get values of several lookups.
  for (const PlacedValues &run : values)
    routing->addValues(run, out, stream);
  if (divisor != 1)
    routing->divide(out, count, divisor, stream);
}

} // namespace neuroshard::cuda
