//===- CudaBackend.h - A backend on the kernels of a GPU --------*- C++ -*-===//
//
// Lookups, updates, and copies and sums of rows run on the GPU, in managed
// memory. A backend on the host packs ids there.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDABACKEND_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDABACKEND_H

#include "Routing.h"
#include "Step/Device.h"
#include "neuroshard/Runtime/Backend.h"

#include <memory>
#include <string>

namespace neuroshard::cuda {

class CudaBackend : public runtime::Backend {
public:
  CudaBackend(std::shared_ptr<const CudaDriver> driver, int ordinal,
              const std::string &directory, int32_t rank,
              std::span<const runtime::SlotMemory> slots,
              std::unique_ptr<runtime::Backend> host);

  runtime::Buffer acquire(BufferKind kind, int64_t bytes) override {
    return host->acquire(kind, bytes);
  }
  runtime::Buffer acquireOnHost(BufferKind kind, int64_t bytes) override {
    return host->acquireOnHost(kind, bytes);
  }
  runtime::Buffer share(BufferKind kind, const std::byte *values,
                        int64_t bytes) override;
  std::unique_ptr<runtime::IdPacker> packIds(int32_t exchange,
                                             const runtime::JaggedInput &input,
                                             int64_t batch) override {
    return host->packIds(exchange, input, batch);
  }
  void addAtPlaces(std::span<const runtime::PlacedValues> values, float *out,
                   int64_t count, float divisor) override {
    host->addAtPlaces(values, out, count, divisor);
  }

  void addUp(std::span<const runtime::BagLengths> bags) override;
  void moveRows(std::span<const runtime::RowMove> moves) override;
  void lookUp(std::span<const runtime::LookupPart> parts, bool isRead) override;
  std::unique_ptr<runtime::Update>
  prepareUpdate(std::vector<runtime::GradientPart> parts) override;
  void computeWeightGradients(
      std::span<const runtime::WeightGradientPart> parts) override;

private:
  std::shared_ptr<const CudaDriver> driver;
  Gpu gpu;
  std::unique_ptr<runtime::Backend> host;
  std::unique_ptr<OwnStream> stream;
  std::unique_ptr<Device> device;
  std::unique_ptr<Routing> routing;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDABACKEND_H
