//===- UpdateMemory.cpp - Temporaries of an update, by what runs it -------===//
///
/// \file
/// Terms of GPUs are those of lib/RuntimeCuda/Step/StepMemory.cpp;
/// test/python/gpu/test_gpu_memory.py holds the two against each other.
//===----------------------------------------------------------------------===//

#include "UpdateMemory.h"

#include "neuroshard/Model/DeviceClass.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// Hosts and TorchRec, per id: linear ids, runs, lengths, positions; plus the
/// scratch of the sort.
constexpr int64_t kPooledTemporaryBytes = 40;
constexpr int64_t kUnpooledTemporaryBytes = 48;
constexpr int64_t kSortScratchBytes = 16;
/// A segment of more ids than this is reduced by several workers through a
/// buffer row of f32.
constexpr int64_t kLongSegmentIds = 1024;

/// GPUs, per id: key and sorted key, position and sorted position, begin of a
/// run (4 bytes each), place of the gradient (8), factor (4; there for all ids
/// of a device if one of its lookups has weights or is a mean).
constexpr int64_t kPositionBytes = 32;
/// Scratch of CUB's sort of 32-bit keys and values: both once more, and what
/// its tiles tell each other.
constexpr int64_t kDeviceSortBytes = 9;
/// Ids whose gradients are added up to a row of f32, whether or not they are
/// of one run.
constexpr int64_t kChunkIds = 256;
/// Of the arrays that tell kernels what to do: per feature, and per bag.
constexpr int64_t kTaskBytes = 512;
constexpr int64_t kBagsPerTaskByte = 1;

/// Of shards of at most kSmallRows rows, per id: place of the gradient (8) and
/// factor (4).
constexpr int64_t kUnsortedBytes = 12;
/// Their ids are ordered in pieces: positions, and where each row begins, with
/// 4 bytes each.
constexpr int64_t kPieceIds = 256;
constexpr int64_t kPieceBytes = (kPieceIds + kSmallRows + 1) * 4;
/// Rows of f32, and a count for each, to which pieces are added up: of one row
/// of the shard, and of all.
constexpr int64_t kMostSumsOfRow = 512, kMostSums = 8192;

int64_t divideRoundingUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool runsOnGpus(const ShardingProblem &problem) {
  return engineOf(problem) == Engine::Gpu;
}

int64_t hostUpdateBytes(const Feature &feature, int64_t ids, int64_t width) {
  int64_t perId = feature.pooling == Pooling::None ? kUnpooledTemporaryBytes
                                                   : kPooledTemporaryBytes;
  return ids * (perId + kSortScratchBytes) +
         ids / kLongSegmentIds * width * int64_t{4};
}

/// Sums of chunks are as wide as the widest row of the device; a shard knows
/// its own table, and takes that width.
int64_t deviceUpdateBytes(const ShardingProblem &problem, const Table &table,
                          const Feature &feature, int64_t ids) {
  int64_t bags =
      feature.pooling == Pooling::None ? 0 : featureBatch(problem, feature);
  return ids * (kPositionBytes + kDeviceSortBytes) +
         divideRoundingUp(ids, kChunkIds) *
             paddedRowBytes(table.dim, ElementType::F32) +
         kTaskBytes + bags / kBagsPerTaskByte;
}

int64_t smallUpdateBytes(const ShardingProblem &problem, const Feature &feature,
                         const Shard &shard, int64_t ids) {
  int64_t pieces = divideRoundingUp(ids, kPieceIds);
  int64_t sums = std::min(
      {pieces, kMostSumsOfRow, kMostSums / std::max<int64_t>(1, shard.rows())});
  int64_t bags =
      feature.pooling == Pooling::None ? 0 : featureBatch(problem, feature);
  return ids * kUnsortedBytes + pieces * kPieceBytes +
         sums * shard.rows() *
             (paddedRowBytes(shard.width(), ElementType::F32) + 4) +
         kTaskBytes + bags / kBagsPerTaskByte;
}

} // namespace

Engine neuroshard::engineOf(const ShardingProblem &problem) {
  bool runsOnGpus = problem.target == Target::Native &&
                    !problem.topology.devices.empty() &&
                    !isCpu(problem.topology.devices.front().deviceClass);
  return runsOnGpus ? Engine::Gpu : Engine::Cpu;
}

int64_t neuroshard::updateBytes(const ShardingProblem &problem,
                                const Table &table, const Feature &feature,
                                const Shard &shard, int64_t ids, bool norms) {
  if (!runsOnGpus(problem))
    return hostUpdateBytes(feature, ids, shard.width());
  int64_t sorted = deviceUpdateBytes(problem, table, feature, ids);
  if (shard.rows() > kSmallRows || norms)
    return sorted;
  // Another device's longer shard in the same program makes this one sorted,
  // too.
  return std::max(sorted, smallUpdateBytes(problem, feature, shard, ids));
}

int64_t neuroshard::reducedRowBytes(const ShardingProblem &problem,
                                    const Shard &shard) {
  if (!runsOnGpus(problem))
    return shard.width() * 4;
  return paddedRowBytes(shard.width(), ElementType::F32) + 4;
}

int64_t neuroshard::stateRowElements(const ShardingProblem &problem,
                                     int64_t width) {
  if (problem.target == Target::TorchRec19)
    return width;
  return paddedRowBytes(width, ElementType::F32) / 4;
}
