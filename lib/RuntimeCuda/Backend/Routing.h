//===- Routing.h - Moves the values of an exchange on a GPU -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROUTING_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROUTING_H

#include "KernelArguments.h"
#include "Step/Kernels.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Launches the kernels that are the same in all programs.
class Routing {
public:
  Routing(const Gpu &gpu, const Kernels &kernels, CUstream stream)
      : kernels(kernels), stream(stream), arguments(gpu, stream) {}

  void moveRows(std::span<const runtime::RowMove> moves);
  void addUp(std::span<const runtime::BagLengths> bags);

private:
  const Kernels &kernels;
  CUstream stream;
  KernelArguments arguments;
};

/// The moves of one launch, as the kernel reads them.
struct MoveTable {
  std::vector<nsg_move> moves;
  std::vector<nsg_rows> addends; ///< of all moves; `addends` there are null.
  int64_t blocks = 0;
};

/// Leaves out moves of nothing.
MoveTable describeMoves(std::span<const runtime::RowMove> moves);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROUTING_H
