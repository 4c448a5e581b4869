//===- CudaUpdate.h - Update of the slots of a GPU --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDAUPDATE_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDAUPDATE_H

#include "KernelParts.h"
#include "Step/Device.h"
#include "neuroshard/Runtime/Backend.h"

#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace neuroshard::cuda {

/// The distinct rows of an updated slot after its sort. Waits.
std::vector<int64_t> readDistinctRows(const Device &device, int32_t slot,
                                      CUstream stream);

class CudaUpdate : public runtime::Update {
public:
  /// Sorts the ids of `parts`. All other arguments must outlive it.
  CudaUpdate(Device &device, runtime::Backend &backend,
             runtime::BufferSource &buffers, CUstream stream,
             std::span<const runtime::GradientPart> parts);

  void run(std::span<const runtime::StepSize> stepSizes) override;
  Range distinctRows(int32_t slot, Range rows,
                     runtime::RowNumber number) const override;
  const float *norms(int32_t slot) const override;
  void finish(std::span<const runtime::NormTerm> terms) override;

private:
  void add(const runtime::GradientPart &part);
  int32_t slotOf(int32_t lookup) const;
  /// The most distinct rows that a slot can have in this step.
  int64_t mostRows(int32_t slot) const;
  const std::vector<int64_t> &readRows(int32_t slot) const;
  int64_t normsPerRow(int32_t slot) const;
  int64_t countNorms(std::span<const runtime::NormTerm> terms) const;
  runtime::Buffer addUpNorms(std::span<const runtime::NormTerm> terms);

  Device &device;
  runtime::Backend &backend;
  runtime::BufferSource &buffers;
  CUstream stream;
  RowStaging staging;
  std::vector<Part> parts;
  std::vector<nsc_gradient> gradients;
  std::map<int32_t, int64_t> idsOfSlot;
  /// Slots with caches, and the rows there that the batches use.
  std::set<std::pair<int32_t, runtime::RowsInUse *>> cachedSlots;
  /// Distinct rows of slots, once they were asked for.
  mutable std::map<int32_t, std::vector<int64_t>> rowsOfSlots;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDAUPDATE_H
