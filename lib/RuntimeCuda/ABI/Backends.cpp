//===- Backends.cpp - Makes backends for a world --------------------------===//

#include "neuroshard/RuntimeCuda/Backends.h"
#include "Backend/PeerCopies.h"
#include "Driver/PlainMemory.h"
#include "Guard.h"

using namespace neuroshard;
using namespace neuroshard::cuda;
using namespace neuroshard::runtime;

namespace {

class CudaBackendFactory : public BackendFactory {
public:
  CudaBackendFactory(std::string directory, const char *file)
      : directory(std::move(directory)), driver(load(file)) {
    driver->check(driver->deviceGetCount(&numGpus), "counting GPUs");
  }

  std::shared_ptr<DeviceMemory> makeMemory(int32_t rank) override {
    return std::make_shared<PlainMemory>(gpuOf(rank));
  }

  std::unique_ptr<Backend> make(int32_t rank, BackendParts parts) override {
    auto backend = std::make_unique<CudaBackend>(gpuOf(rank), directory, rank,
                                                 std::move(parts));
    made = backend.get();
    return backend;
  }

  std::unique_ptr<Communicator>
  connect(int32_t, BufferSource &buffers,
          std::unique_ptr<Communicator> group) override {
    return std::make_unique<PeerCopies>(*made, buffers, std::move(group));
  }

private:
  static std::shared_ptr<const CudaDriver> load(const char *file) {
    if (file)
      return std::make_shared<const CudaDriver>(CudaDriver::load(file));
    return {std::shared_ptr<void>(), &CudaDriver::get()}; // lives for ever
  }

  /// Ranks take turns where there are fewer GPUs.
  std::shared_ptr<const Gpu> gpuOf(int32_t rank) const {
    return openGpu(driver, rank % numGpus);
  }

  std::string directory;
  std::shared_ptr<const CudaDriver> driver;
  int numGpus = 0;
  const CudaBackend *made = nullptr; ///< by the last make.
};

} // namespace

NSC_EXPORT BackendFactory *nsc_make_backends(const char *directory,
                                             const char *driver) {
  BackendFactory *result = nullptr;
  guard(threadError(), [&] {
    result =
        new CudaBackendFactory(&checked(directory, "the directory"), driver);
  });
  return result;
}

NSC_EXPORT void nsc_free_backends(BackendFactory *backends) { delete backends; }
