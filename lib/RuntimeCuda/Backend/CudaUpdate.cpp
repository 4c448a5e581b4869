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

int64_t bytesOf(int64_t norms) {
  return norms * static_cast<int64_t>(sizeof(float));
}

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

template <typename T>
std::vector<T> download(const Gpu &gpu, const T *from, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  if (count > 0)
    gpu.driver.check(gpu.driver.memcpyDtoH(values.data(),
                                           reinterpret_cast<CUdeviceptr>(from),
                                           values.size() * sizeof(T)),
                     "reading the distinct rows of a step");
  return values;
}

template <typename Key>
std::vector<int64_t> downloadRows(const Gpu &gpu,
                                  const DistinctRows &distinct) {
  std::vector<int32_t> run = download(gpu, distinct.runBegin, 2);
  std::vector<int64_t> rows;
  for (Key key : download(gpu, static_cast<const Key *>(distinct.keys) + run[0],
                          run[1] - run[0]))
    rows.push_back(static_cast<int64_t>(key) - distinct.firstKey);
  return rows;
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
  Buffer list = backend.share(
      BufferKind::Sort, reinterpret_cast<const std::byte *>(places.data()),
      kept.numIds * static_cast<int64_t>(sizeof(int64_t)));
  RowMove move;
  move.source = {reinterpret_cast<const std::byte *>(part.gradients),
                 part.stride};
  move.sourcePlaces = as<const int64_t>(list);
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

const std::vector<int64_t> &CudaUpdate::readRows(int32_t slot) const {
  auto [entry, isNew] = rowsOfSlots.try_emplace(slot);
  if (isNew && hasIds(slot)) {
    ContextScope scope(device.gpu);
    DistinctRows distinct = device.distinctRowsOf(slot);
    entry->second =
        (distinct.keyBytes == 4 ? downloadRows<uint32_t>
                                : downloadRows<uint64_t>)(device.gpu, distinct);
  }
  return entry->second;
}

Range CudaUpdate::distinctRows(int32_t slot, Range rows) const {
  const std::vector<int64_t> &distinct = readRows(slot);
  auto before = [&](int64_t row) {
    return std::lower_bound(distinct.begin(), distinct.end(), row) -
           distinct.begin();
  };
  return {before(rows.begin), before(rows.end)};
}

const float *CudaUpdate::norms(int32_t slot) const {
  return hasIds(slot) ? device.normsOf(slot).norms : nullptr;
}

void CudaUpdate::finish(std::span<const NormTerm> terms) {
  if (parts.empty())
    return;
  // Own norms are in memory of the GPU alone.
  int64_t count = 0;
  for (const NormTerm &term : terms)
    count += term.rows.size();
  Buffer copies = backend.acquire(BufferKind::Norms, bytesOf(count));
  std::vector<RowMove> moves;
  std::byte *next = copies.get();
  for (const NormTerm &term : terms) {
    RowMove &move = moves.emplace_back();
    move.source.first = reinterpret_cast<const std::byte *>(term.norms);
    move.target.first = next;
    move.rows = 1;
    move.width = term.rows.size();
    next += bytesOf(move.width);
  }
  backend.moveRows(moves);
  std::map<int32_t, std::vector<float>> totals;
  const float *value = as<float>(copies);
  for (const NormTerm &term : terms) {
    std::vector<float> &total = totals[term.slot];
    total.resize(std::max(total.size(), static_cast<size_t>(term.rows.end)));
    for (int64_t row = term.rows.begin; row < term.rows.end; ++row)
      total[static_cast<size_t>(row)] += *value++;
  }
  ContextScope scope(device.gpu);
  for (const auto &[slot, total] : totals)
    if (!total.empty())
      device.gpu.driver.check(
          device.gpu.driver.memcpyHtoD(
              reinterpret_cast<CUdeviceptr>(device.normsOf(slot).norms),
              total.data(), total.size() * sizeof(float)),
          "writing the norms of a step");
  device.applyNorms(stream.get());
  stream.wait();
}

} // namespace neuroshard::cuda
