//===- RowMover.h - Copies rows to and from a GPU beside its work -*- C++ -*-=//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROWMOVER_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROWMOVER_H

#include "Driver/GpuMemory.h"
#include "Driver/UploadRing.h"
#include "Routing.h"
#include "neuroshard/Runtime/Backend.h"

#include <functional>

namespace neuroshard::cuda {

/// Rows pass through staging memory on both sides, which one copy moves, and a
/// kernel spreads or gathers them on the GPU: on a stream of their own.
class RowMover : public runtime::RowCopies {
public:
  /// `current`: the stream of the work of the GPU. `kernels` must outlive it.
  RowMover(const Gpu &gpu, const Kernels &kernels,
           std::function<CUstream()> current)
      : gpu(gpu), current(std::move(current)), stream(gpu),
        routing(gpu, kernels), uploads(gpu) {}

  Point now() override;
  std::span<std::byte> staging(int64_t bytes) override;
  void write(const runtime::PlacedRows &rows, const std::byte *staged,
             const Point &point) override;
  void read(const runtime::PlacedRows &rows, std::byte *staged,
            const Point &point) override;

private:
  /// Makes room for the rows on the GPU, and uploads their places.
  void begin(const runtime::PlacedRows &rows, const Point &point);

  const Gpu &gpu;
  std::function<CUstream()> current;
  OwnStream stream;
  Routing routing;
  UploadRing uploads;
  PinnedBlock onHost;
  DeviceBlock onGpu, placesOnGpu;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_ROWMOVER_H
