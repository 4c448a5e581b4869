//===- ShardMemory.h - Weights and state of one shard on a GPU -*- C++ -*-===//
//
// The same layout as on the CPU (lib/Runtime/Shards/Shard.h): rows of weights
// and of per-element state are padded to 16 bytes; per-row state is one f32 per
// row.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_SHARDMEMORY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_SHARDMEMORY_H

#include "Driver/GpuMemory.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/ThreadPool.h"
#include "neuroshard/RuntimeCuda/CudaABI.h"

#include <array>

namespace neuroshard::cuda {

class ShardMemory {
public:
  /// Allocates weights (zero) and state (initial values), or uses the caller's
  /// memory `given`. The context must be current, here and in all functions.
  ShardMemory(const Gpu &gpu, const ShardSpec &shard, const TableSpec &table,
              const nsc_slot_memory *given);

  const ShardSpec &shard() const { return *shardSpec; }
  const TableSpec &table() const { return *tableSpec; }

  void *weights() const { return reinterpret_cast<void *>(weightAddress); }
  /// Null if the optimizer has fewer states.
  float *state(size_t index) const {
    return reinterpret_cast<float *>(stateAddress[index]);
  }

  int numStates() const;
  int64_t weightStrideBytes() const;
  /// f32 values of a row of a state, and from row to row.
  int64_t stateWidth(int state) const;
  int64_t stateStride(int state) const;
  int64_t weightBytes() const;
  int64_t stateBytes(int state) const;

  /// Fills weights as the CPU runtime does and resets the state.
  void initialize(uint64_t seed, runtime::ThreadPool &threads);

  /// Rows [begin, end) of the shard from and to a dense array in host memory.
  /// Throws a RuntimeError if they are not rows of the shard or the optimizer
  /// has no such state.
  void readWeights(int64_t begin, int64_t end, void *values) const;
  void writeWeights(int64_t begin, int64_t end, const void *values);
  void readState(int32_t state, int64_t begin, int64_t end,
                 float *values) const;
  void writeState(int32_t state, int64_t begin, int64_t end,
                  const float *values);

private:
  void take(const nsc_slot_memory &given);
  void allocate();
  void resetState();
  void checkRows(int64_t begin, int64_t end) const;
  CUdeviceptr checkedState(int32_t state, int64_t begin, int64_t end) const;

  const Gpu &gpu;
  const ShardSpec *shardSpec;
  const TableSpec *tableSpec;
  std::array<DeviceBlock, kMaxStates + 1> blocks;
  CUdeviceptr weightAddress = 0;
  std::array<CUdeviceptr, kMaxStates> stateAddress = {};
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_SHARDMEMORY_H
