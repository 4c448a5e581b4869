//===- UpdateMemory.cpp - Temporaries of an update, by what runs it -------===//
///
/// \file
/// Buffers of GPUs are those of Artifact/UpdateBuffers.h;
/// test/python/gpu/test_gpu_memory.py holds them against running steps.
//===----------------------------------------------------------------------===//

#include "UpdateMemory.h"

#include "neuroshard/Artifact/UpdateBuffers.h"
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

/// Scratch of CUB's sort of 32-bit keys and values: both once more, and what
/// its tiles tell each other.
constexpr int64_t kDeviceSortBytes = 9;
/// Of the arrays that tell kernels what to do: per feature, and per bag.
constexpr int64_t kTaskBytes = 512;
constexpr int64_t kBagsPerTaskByte = 1;

bool runsOnGpus(const ShardingProblem &problem) {
  return engineOf(problem) == Engine::Gpu;
}

int64_t hostUpdateBytes(const Feature &feature, int64_t ids, int64_t width) {
  int64_t perId = feature.pooling == Pooling::None ? kUnpooledTemporaryBytes
                                                   : kPooledTemporaryBytes;
  return ids * (perId + kSortScratchBytes) +
         ids / kLongSegmentIds * width * int64_t{4};
}

/// Floats of a row, with those that fill it up.
int64_t strideOf(int64_t width) {
  return paddedRowBytes(width, ElementType::F32) /
         elementBytes(ElementType::F32);
}

/// Of what kernels are told of a feature.
int64_t taskBytes(const ShardingProblem &problem, const Feature &feature) {
  int64_t bags =
      feature.pooling == Pooling::None ? 0 : featureBatch(problem, feature);
  return kTaskBytes + bags / kBagsPerTaskByte;
}

/// Sums of chunks are as wide as the widest row of the device; a shard knows
/// its own table, and takes that width. A part of a chunk counts as one: with
/// the ids of other features it may become one.
int64_t deviceUpdateBytes(const ShardingProblem &problem, const Table &table,
                          const Feature &feature, int64_t ids) {
  UpdateRows rows;
  rows.hasFactors = true; // if another lookup of the device has some
  rows.widest = strideOf(table.dim);
  UpdateNeeds needs;
  needs.positions = ids;
  needs.sortBytes = ids * kDeviceSortBytes;
  int64_t partOfChunk =
      ids % kChunkIds > 0 ? paddedRowBytes(table.dim, ElementType::F32) : 0;
  return layOutUpdate(rows, needs, 1).bytes + partOfChunk +
         taskBytes(problem, feature);
}

} // namespace

Engine neuroshard::engineOf(const ShardingProblem &problem) {
  bool runsOnGpus = problem.target == Target::Native &&
                    !problem.topology.devices.empty() &&
                    !isCpu(problem.topology, problem.topology.devices.front());
  return runsOnGpus ? Engine::Gpu : Engine::Cpu;
}

int64_t neuroshard::updateBytes(const ShardingProblem &problem,
                                const Table &table, const Feature &feature,
                                const Shard &shard, int64_t ids) {
  if (!runsOnGpus(problem))
    return hostUpdateBytes(feature, ids, shard.width());
  return deviceUpdateBytes(problem, table, feature, ids);
}

int64_t neuroshard::reducedRowBytes(const ShardingProblem &problem,
                                    const Table &table, const Shard &shard) {
  // On hosts also the sums of the norms: others still read the row's own.
  int64_t times = runsOnGpus(problem) ? 1 : 2;
  return paddedRowBytes(shard.width(), ElementType::F32) +
         times * normsPerRow(table.optimizer.kind) * 4;
}

int64_t neuroshard::stateRowElements(const ShardingProblem &problem,
                                     int64_t width) {
  if (problem.target == Target::TorchRec19)
    return width;
  return paddedRowBytes(width, ElementType::F32) / 4;
}
