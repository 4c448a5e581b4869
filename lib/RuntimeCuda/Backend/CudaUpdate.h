//===- CudaUpdate.h - Update of the slots of a GPU --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDAUPDATE_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDAUPDATE_H

#include "KernelParts.h"
#include "Step/Device.h"
#include "neuroshard/Runtime/Backend.h"

#include <map>
#include <span>
#include <vector>

namespace neuroshard::cuda {

class CudaUpdate : public runtime::Update {
public:
  /// Sorts the ids of `parts`. All other arguments must outlive it.
  CudaUpdate(Device &device, runtime::Backend &backend, const OwnStream &stream,
             std::span<const runtime::GradientPart> parts);

  void run(std::span<const float> stepSizes) override;
  Range distinctRows(int32_t slot, Range rows) const override;
  const float *norms(int32_t slot) const override;
  void finish(std::span<const runtime::NormTerm> terms) override;

private:
  void add(const runtime::GradientPart &part);
  void addWithoutPadding(const runtime::GradientPart &part);
  void addRows(int32_t lookup, const runtime::PeerIds &ids, KernelRows rows);
  bool hasIds(int32_t slot) const;
  const std::vector<int64_t> &readRows(int32_t slot) const;

  Device &device;
  runtime::Backend &backend;
  const OwnStream &stream;
  RowStaging staging;
  std::vector<runtime::Buffer> ids; ///< without padding.
  std::vector<nsc_part> parts;
  std::vector<nsc_gradient> gradients;
  /// Distinct rows of slots, once they were asked for.
  mutable std::map<int32_t, std::vector<int64_t>> rowsOfSlots;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDAUPDATE_H
