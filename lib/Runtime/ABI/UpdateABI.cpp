//===- UpdateABI.cpp - C interface to what updates do with gradients ------===//

#include "Export.h"
#include "Status.h"
#include "World/World.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <cmath>

using namespace neuroshard;
using namespace neuroshard::runtime;

NSRT_EXPORT int32_t nsrt_device_set_gradient_scale(nsrt_device *device,
                                                   float scale) {
  return status([&] {
    if (!std::isfinite(scale) || scale == 0)
      fail("the scale of gradients must be finite and not 0, found ", scale);
    device->gradientScale = scale;
  });
}

NSRT_EXPORT int32_t nsrt_device_set_rates(nsrt_device *device,
                                          const float *rates, int32_t count) {
  return status([&] {
    size_t tables = device->manifest().tables.size();
    if (count != 0 && (count < 0 || static_cast<size_t>(count) != tables))
      fail("expected a learning rate for each of the ", tables,
           " tables, found ", count);
    for (int32_t i = 0; i < count; ++i)
      if (!std::isfinite(rates[i]))
        fail("the learning rate of table ", i, " must be finite, found ",
             rates[i]);
    device->rates = TableRates({rates, rates + count});
  });
}

NSRT_EXPORT int32_t nsrt_device_keep_gradients(nsrt_device *device,
                                               int32_t keep) {
  return status([&] { device->keepsGradients = keep != 0; });
}

/// Arguments: the device, a float, an int64_t.
static void updateKept(void **args) {
  nsrt_update(static_cast<nsrt_device *>(args[0]), 0, nullptr, nullptr,
              *static_cast<float *>(args[1]), *static_cast<int64_t *>(args[2]));
}

NSRT_EXPORT int32_t nsrt_device_update_kept(nsrt_device *device,
                                            float learning_rate, int64_t step) {
  return status([&] {
    if (device->kept.routed.empty())
      return;
    device->keepsGradients = false;
    void *args[] = {device, &learning_rate, &step};
    device->beginStep();
    std::string error = runStep(*device, {updateKept}, args);
    if (!error.empty())
      fail(error);
  });
}

NSRT_EXPORT int32_t nsrt_device_drop_kept(nsrt_device *device) {
  return status([&] {
    device->requireIdle();
    device->kept = {};
  });
}
