//===- CudaUpdate.cpp - Update of the slots of a GPU ----------------------===//
//
// The host waits for the GPU after each phase and reads its memory.
//
//===----------------------------------------------------------------------===//

#include "CudaUpdate.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace neuroshard::cuda {

using namespace runtime;

namespace {

/// Places of the ids that are not padding, [count].
template <typename Id>
std::vector<int64_t> placesWithout(int64_t padding, const PeerIds &ids) {
  const Id *first = reinterpret_cast<const Id *>(ids.ids);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < ids.numIds; ++i)
    if (first[i] != padding)
      places.push_back(i);
  return places;
}

template <typename Key>
Range rangeOfKeys(const DistinctRows &distinct, Range rows) {
  const Key *keys = static_cast<const Key *>(distinct.keys);
  const Key *first = keys + distinct.runBegin[0];
  const Key *last = keys + distinct.runBegin[1];
  auto before = [&](int64_t row) {
    return std::lower_bound(first, last,
                            static_cast<Key>(distinct.firstKey + row)) -
           first;
  };
  return {before(rows.begin), before(rows.end)};
}

} // namespace

CudaUpdate::CudaUpdate(Device &device, Backend &backend,
                       const OwnStream &stream,
                       std::span<const GradientPart> given)
    : device(device), backend(backend), stream(stream),
      staging(device.binding, backend) {
  for (const GradientPart &part : given)
    if (part.ids.numIds > 0)
      part.padding ? addWithoutPadding(part) : add(part);
  if (parts.empty())
    return;
  ContextScope scope(device.gpu);
  device.forward(parts, NSC_TRAINING_JOINED, stream.get());
  stream.wait();
}

void CudaUpdate::add(const GradientPart &part) {
  int64_t rows = part.ids.offsets ? part.ids.bags : part.ids.numIds;
  addRows(part.lookup, part.ids,
          staging.read(part.lookup, part.gradients, part.stride, rows));
}

/// Results of a padding row have no gradient. Pooled lookups get no such ids.
void CudaUpdate::addWithoutPadding(const GradientPart &part) {
  int32_t idBytes =
      device.binding.program.lookups[static_cast<size_t>(part.lookup)].idBytes;
  std::vector<int64_t> places =
      (idBytes == 4 ? placesWithout<int32_t>
                    : placesWithout<int64_t>)(*part.padding, part.ids);
  if (part.ids.offsets || places.size() == size_t(part.ids.numIds))
    return add(part);
  if (places.empty())
    return;
  PeerIds kept = part.ids;
  kept.numIds = static_cast<int64_t>(places.size());
  ids.push_back(backend.acquire(BufferKind::Sort, kept.numIds * idBytes));
  kept.ids = ids.back().get();
  for (size_t i = 0; i < places.size(); ++i)
    std::memcpy(ids.back().get() + i * static_cast<size_t>(idBytes),
                part.ids.ids + places[i] * idBytes,
                static_cast<size_t>(idBytes));
  KernelRows rows = staging.make(part.lookup, kept.numIds);
  RowMove move;
  move.source = {reinterpret_cast<const std::byte *>(part.gradients),
                 part.stride};
  move.sourcePlaces = places.data();
  move.target = {reinterpret_cast<std::byte *>(rows.first), rows.stride};
  move.rows = kept.numIds;
  move.width = staging.dimOf(part.lookup);
  backend.moveRows({&move, 1});
  addRows(part.lookup, kept, rows);
}

void CudaUpdate::addRows(int32_t lookup, const PeerIds &partIds,
                         KernelRows rows) {
  parts.push_back(partOf(lookup, partIds));
  gradients.push_back({rows.first, rows.stride, nullptr});
}

void CudaUpdate::run(std::span<const float> stepSizes) {
  if (parts.empty())
    return;
  ContextScope scope(device.gpu);
  device.setStepSizes(stepSizes, stream.get());
  device.backward(gradients, stream.get());
  stream.wait();
}

bool CudaUpdate::hasIds(int32_t slot) const {
  return std::any_of(parts.begin(), parts.end(), [&](const nsc_part &part) {
    return device.binding.program.lookups[static_cast<size_t>(part.lookup)]
               .slot == slot;
  });
}

Range CudaUpdate::distinctRows(int32_t slot, Range rows) const {
  if (!hasIds(slot))
    return {0, 0};
  DistinctRows distinct = device.distinctRowsOf(slot);
  return (distinct.keyBytes == 4 ? rangeOfKeys<uint32_t>
                                 : rangeOfKeys<uint64_t>)(distinct, rows);
}

const float *CudaUpdate::norms(int32_t slot) const {
  return hasIds(slot) ? device.normsOf(slot).norms : nullptr;
}

void CudaUpdate::finish(std::span<const NormTerm> terms) {
  if (parts.empty())
    return;
  std::map<int32_t, std::vector<float>> totals;
  for (const NormTerm &term : terms) {
    std::vector<float> &total = totals[term.slot];
    total.resize(std::max(total.size(), static_cast<size_t>(term.rows.end)));
    for (int64_t i = 0; i < term.rows.size(); ++i)
      total[static_cast<size_t>(term.rows.begin + i)] += term.norms[i];
  }
  // Only after all sums are done, since they read these norms.
  for (const auto &[slot, total] : totals)
    std::copy(total.begin(), total.end(), device.normsOf(slot).norms);
  ContextScope scope(device.gpu);
  device.applyNorms(stream.get());
  stream.wait();
}

} // namespace neuroshard::cuda
