//===- Backends.cpp - Makes backends for a world --------------------------===//

#include "neuroshard/RuntimeCuda/Backends.h"
#include "Backend/CudaBackend.h"
#include "Driver/ManagedMemory.h"
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

  std::shared_ptr<MemorySource> makeMemory(int32_t rank) override {
    return std::make_shared<ManagedMemory>(driver, ordinalOf(rank));
  }

  std::unique_ptr<Backend> make(int32_t rank, std::span<const SlotMemory> slots,
                                std::unique_ptr<Backend> host) override {
    return std::make_unique<CudaBackend>(driver, ordinalOf(rank), directory,
                                         rank, slots, std::move(host));
  }

private:
  static std::shared_ptr<const CudaDriver> load(const char *file) {
    if (file)
      return std::make_shared<const CudaDriver>(CudaDriver::load(file));
    return {std::shared_ptr<void>(), &CudaDriver::get()}; // lives for ever
  }

  /// Ranks take turns where there are fewer GPUs.
  int ordinalOf(int32_t rank) const { return rank % numGpus; }

  std::string directory;
  std::shared_ptr<const CudaDriver> driver;
  int numGpus = 0;
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
