//===- CpuBackend.cpp - A backend on the threads of the host --------------===//

#include "CpuBackend.h"
#include "CachedRows.h"
#include "CpuUpdate.h"
#include "LookupTasks.h"
#include "MoveRows.h"
#include "PackIds.h"
#include "RowSums.h"
#include "WeightGradients.h"

#include <algorithm>
#include <utility>

namespace neuroshard::runtime {

void CpuBackend::clear(std::byte *first, int64_t bytes) {
  std::fill_n(first, bytes, std::byte(0));
}

void CpuBackend::copy(std::byte *to, const std::byte *from, int64_t bytes) {
  std::copy_n(from, bytes, to);
}

std::unique_ptr<IdPacker>
CpuBackend::packIds(int32_t exchange, const JaggedInput &input, int64_t batch) {
  return std::make_unique<CpuIdPacker>(manifest, exchange, input, batch,
                                       threads);
}

void CpuBackend::addUp(std::span<const BagLengths> bags) {
  threads.parallelFor(static_cast<int64_t>(bags.size()), [&](int64_t i) {
    const BagLengths &run = bags[static_cast<size_t>(i)];
    int64_t next = 0;
    for (int64_t b = 0; b < run.bags; ++b) {
      run.offsets[b] = next;
      next += run.lengths[b];
    }
    run.offsets[run.bags] = next;
  });
}

std::unique_ptr<RowsInUse>
CpuBackend::fetchRows(std::span<const CachedLookup> lookups) {
  return fetchCachedRows(program, shards, lookups, threads);
}

void CpuBackend::lookUp(std::span<const LookupPart> parts, bool isRead) {
  runLookups(program, shards, parts, isRead, threads);
}

void CpuBackend::moveRows(std::span<const RowMove> moves) {
  runMoves(moves, threads);
}

std::unique_ptr<Update>
CpuBackend::prepareUpdate(std::vector<GradientPart> parts) {
  return std::make_unique<CpuUpdate>(program, shards, buffers, threads,
                                     std::move(parts));
}

std::unique_ptr<DistinctSums>
CpuBackend::sumByRow(std::vector<GradientPart> parts) {
  auto sums = std::make_unique<CpuUpdate>(program, shards, buffers, threads,
                                          std::move(parts));
  sums->sumRows();
  return sums;
}

void CpuBackend::addUpRows(std::vector<GradientPart> parts,
                           std::span<const SlotSums> sums) {
  runtime::addUpRows(program, parts, sums, threads);
}

void CpuBackend::updateRows(std::span<const SlotSums> sums,
                            std::span<const StepSize> stepSizes) {
  runtime::updateRows(program, shards, sums, stepSizes, buffers, threads);
}

void CpuBackend::computeWeightGradients(
    std::span<const WeightGradientPart> parts) {
  runWeightGradients(program, shards, parts, buffers, threads);
}

void CpuBackend::addAtPlaces(std::span<const PlacedValues> values, float *out,
                             int64_t count, float divisor) {
  addAndDivide(values, out, count, divisor, threads);
}

} // namespace neuroshard::runtime
