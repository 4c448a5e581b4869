//===- Backends.cpp - Makes backends for a world --------------------------===//

#include "Backend/PeerCopies.h"
#include "Driver/PlainMemory.h"
#include "Guard.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/BackendLibrary.h"

#include <algorithm>

using namespace neuroshard;
using namespace neuroshard::cuda;
using namespace neuroshard::runtime;

namespace {

class CudaBackendFactory : public BackendFactory {
public:
  CudaBackendFactory(const char *directory, const char *file, int32_t gpu,
                     IdCheck check)
      : directory(directory), driver(load(file)), gpu(gpu), check(check) {
    driver->check(driver->deviceGetCount(&numGpus), "counting GPUs");
    if (int32_t first = std::max(gpu, 0); first >= numGpus)
      fail("there is no GPU ", first, "; '", driver->name, "' has ", numGpus);
  }

  void whenFull(std::function<void()> function) override {
    freeCache = std::move(function);
  }

  std::shared_ptr<DeviceMemory> makeMemory(int32_t rank) override {
    return std::make_shared<PlainMemory>(gpuOf(rank));
  }

  std::unique_ptr<Backend> make(int32_t rank, BackendParts parts) override {
    auto backend = std::make_unique<CudaBackend>(gpuOf(rank), directory, rank,
                                                 check, std::move(parts));
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

  std::shared_ptr<const Gpu> gpuOf(int32_t rank) const {
    return openGpu(driver, gpu < 0 ? rank % numGpus : gpu, freeCache);
  }

  std::string directory;
  std::shared_ptr<const CudaDriver> driver;
  int32_t gpu; ///< of all ranks; negative: they take turns.
  IdCheck check;
  std::function<void()> freeCache;
  int numGpus = 0;
  const CudaBackend *made = nullptr; ///< by the last make.
};

} // namespace

NSC_EXPORT BackendFactory *nsc_make_backends(const char *directory,
                                             const char *driver, int32_t gpu,
                                             IdCheck check) {
  return new CudaBackendFactory(directory, driver, gpu, check);
}
