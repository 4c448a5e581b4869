//===- FakeDriver.h - A CUDA driver for tests ------------------*- C++ -*-===//
//
// Exports the driver functions that the runtime calls, and makes mistakes that
// are rare on a GPU certain to show:
//  - Work is queued per stream and runs as late as possible: when it is waited
//    for, in a random order that streams and events allow. A missing
//    dependency, or host memory that is overwritten too early, gives wrong
//    results.
//  - Kernels are scalar loops over the arrays of GpuKernelABI.h
//  (FakeKernels.cpp).
//  - A capture refuses the calls that CUDA refuses, and graphs can be replayed.
//  - Calls are counted, and memory can run out.
//
// Tests load it as a library and reach its state through fakeState().
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIMECUDA_FAKEDRIVER_H
#define NEUROSHARD_TEST_RUNTIMECUDA_FAKEDRIVER_H

#include "FakeGraph.h"
#include "neuroshard/RuntimeCuda/CudaDriver.h"

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace fake {

/// A body of nsg_lookup, by its variant: f32 weights and results.
struct LookupBody {
  int64_t dim;
  bool pooled, mean, weighted, fixed;
  int32_t idBytes;
  int64_t itemsPerBlock;
};

/// A body of nsg_update (SGD), or of nsg_reduce and nsg_apply (row-wise
/// Adagrad over tableDim columns), by its variant.
struct UpdateBody {
  int64_t dim;
  int64_t tableDim;

  bool operator==(const UpdateBody &) const = default;
};

struct Launch {
  std::string kernel;
  int64_t blocks;
};

struct State {
  // Attributes of the fake GPU.
  int count = 1;
  int capability = 90;
  int64_t freeBytes = int64_t{1} << 40;
  std::vector<LookupBody> lookups;
  std::vector<UpdateBody> updates;
  std::string failingCall; ///< this function returns an error once.

  // Calls so far.
  std::vector<Launch> launches;
  int64_t deviceAllocations = 0;
  int64_t hostAllocations = 0;
  int64_t uploads = 0;
  int64_t waits = 0; ///< of the host.
  int64_t liveBlocks = 0;
  int64_t liveBytes = 0;
  int contextDepth = 0; ///< pushes less pops of this process.
  std::string image;
  /// Wrong arguments that a kernel got.
  std::vector<std::string> violations;

  std::mt19937 random;
  /// Work of this stream comes first whenever it can run.
  neuroshard::cuda::CUstream preferred = nullptr;

  virtual ~State() = default;
  virtual neuroshard::cuda::CUstream makeStream() = 0;
  virtual void beginCapture(neuroshard::cuda::CUstream stream) = 0;
  /// Throws a std::runtime_error if other streams were not joined.
  virtual Graph endCapture(neuroshard::cuda::CUstream stream) = 0;
  virtual void launchGraph(const Graph &graph,
                           neuroshard::cuda::CUstream stream) = 0;
  /// Resets everything but memory that is still allocated.
  virtual void reset(unsigned seed) = 0;
};

/// A kernel's work on its arguments, from FakeKernels.cpp.
std::function<void()> makeKernel(State &state, const std::string &name,
                                 int64_t blocks, void **arguments);

/// nsg_sort of the fake, without streams.
void sortPositions(const void *keys, int32_t keyBytes, int32_t endBit,
                   const int32_t *iota, void *sortedKeys, int32_t *order,
                   void *uniqueKeys, int32_t *starts, int32_t *numRuns,
                   int64_t n);

} // namespace fake

/// The state of the one fake driver in this process.
extern "C" fake::State *fakeState();

#endif // NEUROSHARD_TEST_RUNTIMECUDA_FAKEDRIVER_H
