//===- CudaBackend.cpp - A backend on the kernels of a GPU ----------------===//

#include "CudaBackend.h"
#include "CudaUpdate.h"
#include "Driver/Status.h"
#include "KernelParts.h"

#include <cstring>
#include <utility>

namespace neuroshard::cuda {

using namespace runtime;

namespace {

/// The binding as the schedule of a step asks for lookups: sums, which the
/// schedule divides, of rows counted from the first of their shard, and without
/// padding, which it has taken out.
Binding readSums(const std::string &directory, int32_t rank) {
  Binding binding = readBinding(directory, rank);
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

CudaBackend::CudaBackend(std::shared_ptr<const CudaDriver> loaded, int ordinal,
                         const std::string &directory, int32_t rank,
                         std::span<const SlotMemory> slots,
                         std::unique_ptr<Backend> hostBackend)
    : driver(std::move(loaded)), gpu(*driver, ordinal),
      host(std::move(hostBackend)) {
  std::vector<nsc_slot_memory> memory;
  for (const SlotMemory &slot : slots)
    memory.push_back({slot.weights, slot.states[0], slot.states[1]});
  ContextScope scope(gpu);
  stream = std::make_unique<OwnStream>(gpu);
  device = std::make_unique<Device>(gpu, directory, readSums(directory, rank),
                                    optionsOf(memory));
  routing = std::make_unique<Routing>(gpu, device->kernels, stream->get());
}

Buffer CudaBackend::share(BufferKind kind, const std::byte *values,
                          int64_t bytes) {
  Buffer copy = acquire(kind, bytes);
  std::memcpy(copy.get(), values, static_cast<size_t>(bytes));
  return copy;
}

void CudaBackend::addUp(std::span<const BagLengths> bags) {
  ContextScope scope(gpu);
  routing->addUp(bags);
  stream->wait();
}

void CudaBackend::moveRows(std::span<const RowMove> moves) {
  ContextScope scope(gpu);
  routing->moveRows(moves);
  stream->wait();
}

void CudaBackend::lookUp(std::span<const LookupPart> parts, bool) {
  RowStaging staging(device->binding, *this);
  std::vector<nsc_part> lookups;
  std::vector<RowMove> moves;
  for (const LookupPart &part : parts) {
    int64_t rows = rowsOf(part);
    if (rows == 0)
      continue;
    nsc_part &lookup = lookups.emplace_back(partOf(part.lookup, part.ids));
    lookup.out = part.out;
    lookup.out_stride = part.stride;
    if (!part.divisors && staging.takes(part.lookup, part.out, part.stride))
      continue;
    KernelRows staged = staging.make(part.lookup, rows);
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
  ContextScope scope(gpu);
  device->forward(lookups, NSC_INFERENCE, stream->get());
  routing->moveRows(moves);
  stream->wait();
}

std::unique_ptr<Update>
CudaBackend::prepareUpdate(std::vector<GradientPart> parts) {
  return std::make_unique<CudaUpdate>(*device, *this, *stream, parts);
}

void CudaBackend::computeWeightGradients(
    std::span<const WeightGradientPart> parts) {
  RowStaging staging(device->binding, *this);
  std::vector<nsc_part> lookups;
  std::vector<nsc_gradient> gradients;
  std::vector<WeightGradientPart> untrained;
  for (const WeightGradientPart &part : parts) {
    if (part.ids.numIds == 0)
      continue;
    // Programs have no kernel for tables without an optimizer.
    if (device->binding.program.lookups[static_cast<size_t>(part.lookup)]
            .gradientVariant < 0) {
      untrained.push_back(part);
      continue;
    }
    KernelRows rows =
        staging.read(part.lookup, part.gradients, part.stride, part.ids.bags);
    lookups.push_back(partOf(part.lookup, part.ids));
    gradients.push_back({rows.first, rows.stride, part.out});
  }
  host->computeWeightGradients(untrained);
  if (lookups.empty())
    return;
  ContextScope scope(gpu);
  device->forward(lookups, NSC_TRAINING_JOINED, stream->get());
  device->computeWeightGradients(gradients, stream->get());
  stream->wait();
}

} // namespace neuroshard::cuda
