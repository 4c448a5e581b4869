//===- CudaUpdate.cpp - Update of the slots of a GPU ----------------------===//

#include "CudaUpdate.h"

#include <algorithm>

namespace neuroshard::cuda {

using namespace runtime;

namespace {

int64_t bytesOf(int64_t norms) {
  return norms * static_cast<int64_t>(sizeof(float));
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

/// Copies `count` norms, or adds `addend` to them.
RowMove moveOfNorms(const float *from, float *to, int64_t count,
                    const float *addend = nullptr) {
  RowMove move;
  move.source.first = reinterpret_cast<const std::byte *>(from);
  move.target.first = reinterpret_cast<std::byte *>(to);
  if (addend)
    move.addends.push_back({reinterpret_cast<const std::byte *>(addend), 0});
  move.rows = 1;
  move.width = count;
  return move;
}

} // namespace

std::vector<int64_t> readDistinctRows(const Device &device, int32_t slot,
                                      CUstream stream) {
  const CudaDriver &driver = device.gpu.driver;
  driver.check(driver.streamSynchronize(stream), "waiting for the GPU");
  DistinctRows distinct = device.distinctRowsOf(slot);
  return (distinct.keyBytes == 4
              ? downloadRows<uint32_t>
              : downloadRows<uint64_t>)(device.gpu, distinct);
}

CudaUpdate::CudaUpdate(Device &device, Backend &backend, BufferSource &buffers,
                       CUstream stream, std::span<const GradientPart> given)
    : device(device), backend(backend), buffers(buffers), stream(stream),
      staging(device.binding, backend, buffers) {
  for (const GradientPart &part : given)
    if (part.ids.numIds > 0)
      add(part);
  if (parts.empty())
    return;
  GpuScope scope(device.gpu);
  device.forward(parts, NSC_TRAINING_JOINED, stream);
}

int32_t CudaUpdate::slotOf(int32_t lookup) const {
  return device.binding.program.lookups[static_cast<size_t>(lookup)].slot;
}

void CudaUpdate::add(const GradientPart &part) {
  if (part.rows)
    cachedSlots.insert({slotOf(part.lookup), part.rows});
  gradients.push_back(staging.gradientOf(part));
  parts.push_back(staging.partOf(part));
  idsOfSlot[slotOf(part.lookup)] += part.ids.numIds;
}

void CudaUpdate::run(std::span<const runtime::StepSize> stepSizes) {
  if (parts.empty())
    return;
  GpuScope scope(device.gpu);
  if (!device.gpu.isCapturing(stream))
    device.setStepSizes(stepSizes, stream);
  for (auto [slot, rows] : cachedSlots) {
    rows->markChanged(slot);
    if (device.binding.program.slots[static_cast<size_t>(slot)].twoPhase)
      readRows(slot); // for an exchange of norms: backward() overwrites keys
  }
  device.backward(gradients, stream);
}

int64_t CudaUpdate::mostRows(int32_t slot) const {
  auto found = idsOfSlot.find(slot);
  if (found == idsOfSlot.end())
    return 0;
  return std::min(
      found->second,
      device.binding.shardOf(static_cast<size_t>(slot)).rows.size());
}

const std::vector<int64_t> &CudaUpdate::readRows(int32_t slot) const {
  auto [entry, isNew] = rowsOfSlots.try_emplace(slot);
  if (isNew && idsOfSlot.contains(slot)) {
    GpuScope scope(device.gpu);
    entry->second = readDistinctRows(device, slot, stream);
  }
  return entry->second;
}

Range CudaUpdate::distinctRows(int32_t slot, Range rows,
                               RowNumber number) const {
  const ShardSpec &shard = device.binding.shardOf(static_cast<size_t>(slot));
  if (number == RowNumber::Bound &&
      rows == shard.rows) // counted from the first: Backend/CudaBackend.cpp
    return {0, mostRows(slot)};
  const std::vector<int64_t> &distinct = readRows(slot);
  auto before = [&](int64_t row) {
    return std::lower_bound(distinct.begin(), distinct.end(), row) -
           distinct.begin();
  };
  return {before(rows.begin), before(rows.end)};
}

const float *CudaUpdate::norms(int32_t slot) const {
  return idsOfSlot.contains(slot) ? device.normsOf(slot).norms : nullptr;
}

int64_t CudaUpdate::normsPerRow(int32_t slot) const {
  return device.binding.tableOf(static_cast<size_t>(slot)).normsPerRow();
}

/// How many norms of a slot there are, from its first distinct row on.
int64_t CudaUpdate::countNorms(std::span<const NormTerm> terms) const {
  int64_t rows = 0;
  for (const NormTerm &term : terms)
    rows = std::max(rows, term.rows.end);
  return rows * normsPerRow(terms.front().slot);
}

/// The sums of the norms of one slot, which begin with its first distinct row.
Buffer CudaUpdate::addUpNorms(std::span<const NormTerm> terms) {
  int64_t count = countNorms(terms), perRow = normsPerRow(terms.front().slot);
  Buffer total = buffers.acquire(BufferKind::Norms, bytesOf(count));
  auto *sums = as<float>(total);
  bool areAlike =
      std::all_of(terms.begin(), terms.end(), [&](const NormTerm &term) {
        return term.rows == Range{0, count / perRow};
      });
  if (areAlike) {
    RowMove move = moveOfNorms(terms[0].norms, sums, count);
    for (const NormTerm &term : terms.subspan(1))
      move.addends.push_back(
          {reinterpret_cast<const std::byte *>(term.norms), 0});
    backend.moveRows({&move, 1});
    return total;
  }
  backend.clear(total.get(), bytesOf(count));
  for (const NormTerm &term : terms) {
    float *part = sums + term.rows.begin * perRow;
    RowMove move =
        moveOfNorms(part, part, term.rows.size() * perRow, term.norms);
    backend.moveRows({&move, 1}); // the next one may add to the same
  }
  return total;
}

void CudaUpdate::finish(std::span<const NormTerm> given) {
  if (parts.empty())
    return;
  std::map<int32_t, std::vector<NormTerm>> termsOfSlot;
  for (const NormTerm &term : given)
    if (term.rows.size() > 0)
      termsOfSlot[term.slot].push_back(term);
  std::vector<Buffer> totals;
  std::vector<RowMove> moves;
  for (const auto &[slot, terms] : termsOfSlot) {
    totals.push_back(addUpNorms(terms));
    moves.push_back(moveOfNorms(as<const float>(totals.back()),
                                device.normsOf(slot).norms, countNorms(terms)));
  }
  backend.moveRows(moves); // last: all sums have read these norms
  GpuScope scope(device.gpu);
  device.applyNorms(stream);
}

} // namespace neuroshard::cuda
