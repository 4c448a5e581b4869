//===- UpdateABI.cpp - C interface to what updates do with gradients ------===//

#include "Exchange/IdExchange.h"
#include "Export.h"
#include "Guarded.h"
#include "Status.h"
#include "Step/CopyAverages.h"
#include "Step/PreparedUpdate.h"
#include "World/World.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

NSRT_EXPORT int32_t nsrt_device_freeze(nsrt_device *device,
                                       const int32_t *tables, int32_t count) {
  return status([&] {
    const Manifest &manifest = device->manifest();
    std::vector<bool> frozen(manifest.tables.size());
    for (int32_t i = 0; i < count; ++i) {
      if (tables[i] < 0 || static_cast<size_t>(tables[i]) >= frozen.size())
        fail("expected tables from 0 to ", frozen.size() - 1, ", found ",
             tables[i]);
      frozen[static_cast<size_t>(tables[i])] = true;
    }
    if (count <= 0)
      device->frozen = nullptr;
    else if (!device->frozen || device->frozen->tables() != frozen)
      device->frozen = std::make_shared<FrozenTables>(
          manifest, device->plan->groups, std::move(frozen));
  });
}

NSRT_EXPORT int32_t nsrt_device_keep_gradients(nsrt_device *device,
                                               int32_t keep) {
  return status([&] { device->keepsGradients = keep != 0; });
}

static void run(nsrt_device *device, nsrt_host_function function, void **args) {
  device->beginStep();
  std::string error = runStep(*device, {function}, args);
  if (!error.empty())
    fail(error);
}

/// Arguments: the device, a float, an int64_t.
static void updateKept(void **args) {
  nsrt_update(static_cast<nsrt_device *>(args[0]), 0, nullptr, nullptr,
              *static_cast<float *>(args[1]), *static_cast<int64_t *>(args[2]));
}

NSRT_EXPORT int32_t nsrt_device_update_kept(nsrt_device *device,
                                            float learning_rate, int64_t step) {
  return status([&] {
    if (device->kept.routed.empty() && !device->prepared)
      return;
    device->keepsGradients = false;
    void *args[] = {device, &learning_rate, &step};
    run(device, updateKept, args);
  });
}

/// Arguments: the device.
static void averageAll(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  guarded(device, [&] {
    requireNoCapture(*device);
    requireAllAverage(*device);
    device->order.addAverage();
    averageCopies(*device, device->plan->driftingCopies);
  });
}

NSRT_EXPORT int32_t nsrt_device_average_copies(nsrt_device *device) {
  return status([&] {
    device->requireIdle();
    if (device->plan->driftingCopies.empty())
      return;
    void *args[] = {device};
    run(device, averageAll, args);
  });
}

NSRT_EXPORT int32_t nsrt_device_drop_kept(nsrt_device *device) {
  return status([&] {
    device->requireIdle();
    device->kept = {};
    device->prepared.reset();
  });
}

/// Sums of rows are those of all ranks, which copies that drift do not have.
static void requireNoDrift(const nsrt_device &device) {
  const std::vector<int32_t> &shards = device.plan->driftingCopies;
  if (!shards.empty()) {
    const ShardSpec &shard =
        device.manifest().shards[static_cast<size_t>(shards.front())];
    fail(
        "copies of table \"", device.manifest().tableOf(shard).name,
        "\" drift (sync_every ", shard.syncEvery,
        "), so that the norm of its gradients is not known; do not clip by the "
        "norm, or plan without sync_every");
  }
}

/// Arguments: the device, an array of sums, their number.
static void prepareKept(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto *sums = static_cast<nsrt_gradient_sums *>(args[1]);
  auto *count = static_cast<int32_t *>(args[2]);
  guarded(device, [&] {
    if (!device->prepared)
      device->prepared =
          std::make_shared<PreparedUpdate>(gatherGradients(*device, {}, {}));
    for (const SlotSums &one : ownSums(*device, *device->prepared))
      sums[(*count)++] = {
          one.slot, one.sums, one.rows,
          device->slots[static_cast<size_t>(one.slot)].spec().cols.size(),
          one.stride};
  });
}

NSRT_EXPORT int32_t nsrt_device_kept_sums(nsrt_device *device,
                                          nsrt_gradient_sums *sums,
                                          int32_t *count) {
  return status([&] {
    *count = 0;
    if (device->kept.routed.empty() && !device->prepared)
      return;
    requireNoDrift(*device);
    void *args[] = {device, sums, count};
    run(device, prepareKept, args);
  });
}

NSRT_EXPORT int32_t nsrt_device_scale_kept(nsrt_device *device, float scale) {
  return status([&] {
    if (!std::isfinite(scale))
      fail("the scale of gradients must be finite, found ", scale);
    device->requireIdle();
    if (device->prepared)
      scaleGradients(*device, *device->prepared, scale);
  });
}
