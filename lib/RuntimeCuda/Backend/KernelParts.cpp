//===- KernelParts.cpp - Parts of a step as GPU kernels take them ---------===//

#include "KernelParts.h"
#include "Driver/Status.h"
#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Support/Round.h"

namespace neuroshard::cuda {

using namespace runtime;

namespace {

constexpr int64_t kValuesOf16Bytes = 4;

} // namespace

int64_t RowStaging::dimOf(int32_t lookup) const {
  auto slot = static_cast<size_t>(
      binding.program.lookups[static_cast<size_t>(lookup)].slot);
  return binding.program.slots[slot].dim;
}

Part RowStaging::partOf(int32_t lookup, const PeerIds &ids) const {
  Part part = {};
  part.lookup = lookup;
  part.feature = binding.specOf(static_cast<size_t>(lookup)).feature;
  part.exact = ids.isExact;
  part.ids = ids.ids;
  part.offsets = ids.offsets;
  part.sample_weights = ids.weights;
  part.id_end = ids.numIds;
  part.bags = ids.bags;
  part.idsArePlaces = hasCache(lookup);
  return part;
}

bool RowStaging::hasCache(int32_t lookup) const {
  int32_t slot = binding.program.lookups[static_cast<size_t>(lookup)].slot;
  return binding.shardOf(static_cast<size_t>(slot)).hasRowCache();
}

Part RowStaging::partOf(const GradientPart &given) const {
  Part part = partOf(given.lookup, given.ids);
  part.places = given.places;
  part.idsArePlaces = 0;
  part.padding = given.padding.value_or(-1);
  const GpuLookup &lookup =
      binding.program.lookups[static_cast<size_t>(given.lookup)];
  part.isSummed = (lookup.pooled && !given.ids.offsets) ||
                  (lookup.weighted && !given.ids.weights);
  return part;
}

nsc_gradient RowStaging::gradientOf(const GradientPart &part) {
  int64_t rows = part.ids.offsets ? part.ids.bags : part.ids.numIds;
  KernelRows found = read(part.lookup, part.gradients, part.stride, rows);
  return {found.first, found.stride, nullptr};
}

StagedGradients RowStaging::gradientsOf(std::span<const GradientPart> given) {
  StagedGradients staged;
  for (const GradientPart &part : given) {
    if (part.ids.numIds == 0)
      continue;
    staged.parts.push_back(partOf(part));
    staged.gradients.push_back(gradientOf(part));
  }
  return staged;
}

bool RowStaging::takes(int32_t lookup, const float *first,
                       int64_t stride) const {
  if (dimOf(lookup) % kValuesOf16Bytes != 0)
    return true;
  return isMultiple(first, 16) && stride % kValuesOf16Bytes == 0;
}

KernelRows RowStaging::make(BufferKind kind, int32_t lookup, int64_t rows) {
  int64_t stride = paddedColumns(dimOf(lookup));
  buffers.push_back(source.acquire(
      kind, rows * stride * static_cast<int64_t>(sizeof(float))));
  return {as<float>(buffers.back()), stride};
}

KernelRows RowStaging::read(int32_t lookup, const float *gradients,
                            int64_t stride, int64_t rows) {
  if (takes(lookup, gradients, stride))
    return {const_cast<float *>(gradients), stride};
  KernelRows staged = make(BufferKind::ReceivedGradients, lookup, rows);
  RowMove move;
  move.source = {reinterpret_cast<const std::byte *>(gradients), stride};
  move.target = {reinterpret_cast<std::byte *>(staged.first), staged.stride};
  move.rows = rows;
  move.width = dimOf(lookup);
  backend.moveRows({&move, 1});
  return staged;
}

} // namespace neuroshard::cuda
