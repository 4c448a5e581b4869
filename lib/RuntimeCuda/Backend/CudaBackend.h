//===- CudaBackend.h - A backend on the kernels of a GPU --------*- C++ -*-===//
//
// All work is put on one stream, and the host waits for the numbers of ids
// alone, if they are not read in place, and for the rows of norms where column
// shards have different rows.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDABACKEND_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDABACKEND_H

#include "CachedRows.h"
#include "Driver/UploadRing.h"
#include "IdPacking.h"
#include "LateChecks.h"
#include "RowMover.h"
#include "Step/Device.h"
#include "neuroshard/Runtime/Backend.h"

#include <memory>
#include <string>

namespace neuroshard::cuda {

class CudaBackend : public runtime::Backend {
public:
  CudaBackend(std::shared_ptr<const Gpu> gpu, const std::string &directory,
              int32_t rank, runtime::IdCheck check,
              runtime::BackendParts parts);

  void useStream(void *stream) override;
  bool isCapturing() const override;
  void setStepSizes(std::span<const runtime::StepSize> ofSlot) override;
  void finish() override;
  void clear(std::byte *first, int64_t bytes) override;
  void copy(std::byte *to, const std::byte *from, int64_t bytes) override;
  std::unique_ptr<runtime::IdPacker> packIds(int32_t exchange,
                                             const runtime::JaggedInput &input,
                                             int64_t batch) override;
  bool readsInPlace() const override {
    return idCheck == runtime::IdCheck::Late;
  }
  std::unique_ptr<runtime::RowsInUse>
  fetchRows(std::span<const runtime::CachedLookup> lookups) override;
  runtime::RowCopies *rowCopies() override { return rowMover.get(); }
  void readInPlace(int32_t exchange, const runtime::JaggedInput &input,
                   int64_t *offsets, float *sizes) override;
  void check() override;
  void addUp(std::span<const runtime::BagLengths> bags) override;
  void moveRows(std::span<const runtime::RowMove> moves) override;
  void lookUp(std::span<const runtime::LookupPart> parts, bool isRead) override;
  std::unique_ptr<runtime::Update>
  prepareUpdate(std::vector<runtime::GradientPart> parts) override;
  std::unique_ptr<runtime::DistinctSums>
  sumByRow(std::vector<runtime::GradientPart> parts) override;
  void addUpRows(std::vector<runtime::GradientPart> parts,
                 std::span<const runtime::SlotSums> sums) override;
  void updateRows(std::span<const runtime::SlotSums> sums,
                  std::span<const runtime::StepSize> stepSizes) override;
  void computeWeightGradients(
      std::span<const runtime::WeightGradientPart> parts) override;
  void addAtPlaces(std::span<const runtime::PlacedValues> values, float *out,
                   int64_t count, float divisor) override;

  std::shared_ptr<const Gpu> ownGpu() const { return holder; }
  CUstream currentStream() const { return stream; }

private:
  std::shared_ptr<const Gpu> holder;
  const Gpu &gpu;
  runtime::IdCheck idCheck = runtime::IdCheck::Early;
  runtime::BufferSource &buffers;
  std::unique_ptr<runtime::Backend> host;
  Manifest manifest; ///< of the artifact, as the compiler wrote it.
  std::unique_ptr<OwnStream> ownStream;
  CUstream stream = nullptr;
  std::unique_ptr<Device> device;
  std::unique_ptr<Routing> routing;
  std::unique_ptr<PackingTools> packing;
  std::unique_ptr<UploadRing> rowUploads; ///< of CudaSums.
  std::unique_ptr<LateChecks> lateChecks;
  // Of shards with caches of rows.
  std::unique_ptr<CachedRows> cachedRows;
  std::unique_ptr<RowMover> rowMover;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_CUDABACKEND_H
