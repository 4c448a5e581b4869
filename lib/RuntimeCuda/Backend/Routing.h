//===- Routing.h - Moves the values of an exchange on a GPU -----*- C++ -*-===//
//
// Launches the kernels that are the same in all programs.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROUTING_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROUTING_H

#include "KernelArguments.h"
#include "Step/Kernels.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <span>
#include <vector>

namespace neuroshard::cuda {

/// The moves of one launch, as the kernel reads them.
struct MoveTable {
  std::vector<nsg_move> moves;
  std::vector<nsg_rows> addends; ///< of all moves; `addends` there are null.
  int64_t blocks = 0;
};

class Routing {
public:
  Routing(const Gpu &gpu, const Kernels &kernels)
      : kernels(kernels), arguments(gpu) {}

  void moveRows(std::span<const runtime::RowMove> moves, CUstream stream);
  void addUp(const std::vector<nsg_bags> &sets, CUstream stream);
  /// Lessens *firstBad to the number of the first bag that is wrong.
  void checkOffsets(const int64_t *offsets, int64_t bags, uint64_t *firstBad,
                    CUstream stream);
  /// Copies the offsets of `bags` bags, or sets them to 0 if bad[0] or they
  /// themselves say that they are wrong; `sizes` may be null.
  void trustOffsets(const runtime::JaggedInput &input, uint64_t *bad,
                    int64_t *trusted, float *sizes, CUstream stream);
  /// Sets the first blocks of the buckets.
  void countBags(std::vector<nsg_bucket> &buckets, uint64_t *badId,
                 CUstream stream);
  void packIds(std::vector<nsg_bucket> &buckets, CUstream stream);
  /// Adds values to `out`.
  void addValues(const runtime::PlacedValues &values, float *out,
                 CUstream stream);
  void divide(float *values, int64_t count, float divisor, CUstream stream);

private:
  void launch(Kernel kernel, MoveTable table, CUstream stream);

  const Kernels &kernels;
  KernelArguments arguments;
};

/// The moves that nsg_move_rows runs. Leaves out moves of nothing.
MoveTable describeMoves(std::span<const runtime::RowMove> moves);
/// Those that nsg_move_scaled_rows runs: rows with scales, which are computed.
MoveTable describeScaledMoves(std::span<const runtime::RowMove> moves);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROUTING_H
