//===- Backends.cpp - Makes backends for a world --------------------------===//

#include "neuroshard/RuntimeCuda/Backends.h"
#include "Backend/CudaBackend.h"
#include "Guard.h"

using namespace neuroshard;
using namespace neuroshard::cuda;
using namespace neuroshard::runtime;

namespace {

class CudaBackendFactory : public BackendFactory {
public:
  CudaBackendFactory(std::string directory, const std::string &file)
      : directory(std::move(directory)),
        driver(std::make_shared<const CudaDriver>(CudaDriver::load(file))) {
    if (!driver->emulated)
      fail("'", file,
           "' is no emulator: ids are routed in memory of the host, "
           "which kernels on a GPU cannot read");
  }

  std::unique_ptr<Backend> make(int32_t rank, std::span<const SlotMemory> slots,
                                std::unique_ptr<Backend> host) override {
    return std::make_unique<CudaBackend>(driver, directory, rank, slots,
                                         std::move(host));
  }

private:
  std::string directory;
  std::shared_ptr<const CudaDriver> driver;
};

} // namespace

NSC_EXPORT BackendFactory *nsc_make_backends(const char *directory,
                                             const char *driver) {
  BackendFactory *result = nullptr;
  guard(threadError(), [&] {
    result = new CudaBackendFactory(&checked(directory, "the directory"),
                                    &checked(driver, "the driver"));
  });
  return result;
}

NSC_EXPORT void nsc_free_backends(BackendFactory *backends) { delete backends; }
