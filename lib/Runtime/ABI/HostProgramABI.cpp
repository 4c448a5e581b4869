//===- HostProgramABI.cpp - C interface for compiled host code ------------===//
//
// Each call runs one phase of a step and records exceptions as the device's
// failure. A failure that the other ranks cannot know of aborts the group.
//
//===----------------------------------------------------------------------===//

#include "Exchange/GradientExchange.h"
#include "Exchange/IdExchange.h"
#include "Exchange/RelayDuties.h"
#include "Export.h"
#include "Guarded.h"
#include "HostTensors.h"
#include "Step/FetchRows.h"
#include "Step/KeptGradients.h"
#include "Step/Steps.h"
#include "neuroshard/Artifact/Error.h"

#include <cstring>
#include <utility>

using namespace neuroshard;
using namespace neuroshard::runtime;

namespace {

/// As guarded(), for a call on the ids of a step. Records the failure with the
/// ids, so that later calls on them, in any function, fail for the same reason.
template <typename Function>
bool guarded(nsrt_device *device, nsrt_routed *routed,
             const Function &function) noexcept {
  if (runtime::guarded(device, function))
    return true;
  if (routed->error.empty()) {
    routed->error.swap(device->error);
    device->recordFailure(routed->error);
    routed->failedAlone = true;
  }
  return false;
}

bool usable(nsrt_device *device, const nsrt_routed *routed) {
  if (routed && routed->error.empty())
    return true;
  device->recordFailure(routed ? routed->error : "no memory");
  if (!routed || routed->failedAlone)
    device->communicator->abort(device->error);
  return false;
}

void checkLookupIndex(const nsrt_device *device, const nsrt_routed *routed,
                      int64_t lookup) {
  size_t count = device->manifest().exchanges[routed->exchange].lookups.size();
  if (lookup < 0 || lookup >= static_cast<int64_t>(count))
    fail("exchange ", routed->exchange, " has no lookup ", lookup);
}

ElementType checkType(int32_t type) {
  if (type < 0 || type > static_cast<int32_t>(ElementType::BF16))
    fail("unknown element type ", type,
         "; expected 0 (f32), 1 (f16) or 2 (bf16)");
  return ElementType(type);
}

/// Of a step that has failed; if this fails as well, the values are undefined.
void clear(nsrt_device *device, void *out, int64_t bytes) noexcept {
  try {
    DeviceTensor tensor = DeviceTensor::write(*device, out, bytes);
    device->backend->clear(tensor.get(), bytes);
    tensor.finish(*device);
  } catch (const std::exception &error) {
    device->recordFailure(error.what());
  }
}

/// Bytes from the first to the last element of rows that are `stride` elements
/// apart.
int64_t spanOf(int64_t rows, int64_t stride, int64_t dim, ElementType type) {
  return rows == 0 ? 0 : ((rows - 1) * stride + dim) * elementBytes(type);
}

/// False for the routed ids of a step that failed before it had lookups.
bool hasLookup(const nsrt_routed *routed, int64_t lookup) {
  return routed && lookup >= 0 &&
         static_cast<size_t>(lookup) < routed->lookups.size();
}

int64_t dimOf(const nsrt_device *device, const nsrt_routed *routed,
              int64_t lookup) {
  const ExchangeSpec &exchange = device->manifest().exchanges[routed->exchange];
  return device->manifest()
      .tables[exchange.lookups[static_cast<size_t>(lookup)].table]
      .dim;
}

/// Writes the results of as many lookups from `first` on as there are types.
void writeResults(nsrt_device *device, nsrt_routed *routed,
                  nsrt_partials *partials, int64_t first,
                  std::span<const int32_t> types, void *const *outs,
                  const int64_t *strides) {
  std::vector<ResultTarget> targets;
  std::vector<DeviceTensor> tensors;
  for (size_t i = 0; i < types.size(); ++i) {
    int64_t lookup = first + static_cast<int64_t>(i);
    checkLookupIndex(device, routed, lookup);
    int64_t rows = routed->lookups[static_cast<size_t>(lookup)].resultRows;
    if (rows > 0 && !outs[i])
      fail("no memory for result ", lookup, " (rows: ", rows, ")");
    int64_t dim = dimOf(device, routed, lookup);
    if (strides[i] < dim || (device->tensorsOnHost && strides[i] != dim))
      fail("result ", lookup, ": expected rows at least ", dim,
           " elements apart, and side by side in memory of the host, found ",
           strides[i]);
    ElementType type = checkType(types[i]);
    tensors.push_back(DeviceTensor::write(*device, outs[i],
                                          spanOf(rows, strides[i], dim, type)));
    targets.push_back({lookup, type, tensors.back().get(), strides[i]});
  }
  writeResults(*device, *routed, *partials, targets);
  for (const DeviceTensor &tensor : tensors)
    tensor.finish(*device);
}

/// The gradients that the caller gives, in memory of the device; `partials`
/// keeps what is copied.
std::vector<ResultGradient>
gradientsOf(nsrt_device *device, const nsrt_routed *routed, int64_t count,
            const int32_t *types, const void *const *gradients,
            const int64_t *strides, bool lasting, nsrt_partials &partials) {
  std::vector<ResultGradient> given;
  for (int64_t i = 0; i < count; ++i) {
    checkLookupIndex(device, routed, i);
    auto lookup = static_cast<size_t>(i);
    ElementType type = checkType(types[i]);
    if (strides[i] < 0)
      fail("gradient ", i, ": expected rows in ascending order, found ",
           strides[i], " elements from row to row");
    int64_t rows = routed->lookups[lookup].resultRows;
    int64_t dim = dimOf(device, routed, i);
    DeviceTensor tensor = DeviceTensor::read(
        *device, gradients[i], spanOf(rows, strides[i], dim, type));
    given.push_back({type, tensor.get(), strides[i], lasting});
    partials.copies.push_back(tensor.takeCopy());
  }
  return given;
}

/// Rows that are not one after the other are cleared with what lies between
/// them: results of the same failed step.
void clearResult(nsrt_device *device, const nsrt_routed *routed, int64_t lookup,
                 int32_t type, void *out, int64_t stride) {
  if (!out || !hasLookup(routed, lookup))
    return;
  int64_t rows = routed->lookups[static_cast<size_t>(lookup)].resultRows;
  clear(device, out,
        spanOf(rows, stride, dimOf(device, routed, lookup), ElementType(type)));
}

/// The input in memory of the device; `routed` keeps what is copied.
JaggedInput onDevice(nsrt_device *device, const JaggedInput &input,
                     nsrt_routed &routed) {
  if (!device->tensorsOnHost)
    return input;
  auto copy = [&](const void *values, int64_t count, int64_t bytes) {
    DeviceTensor tensor = DeviceTensor::read(*device, values, count * bytes);
    std::byte *first = tensor.get();
    routed.inputCopies.push_back(tensor.takeCopy());
    return static_cast<void *>(first);
  };
  const ExchangeSpec &spec = device->manifest().exchanges[routed.exchange];
  return {copy(input.ids, input.numIds, spec.idBytes()), input.numIds,
          static_cast<const int64_t *>(
              copy(input.offsets, input.numOffsets, sizeof(int64_t))),
          input.numOffsets,
          static_cast<const float *>(
              copy(input.weights, input.numIds, sizeof(float)))};
}

nsrt_routed *route(nsrt_device *device, int64_t exchange,
                   const JaggedInput &input) {
  auto routed = std::make_unique<nsrt_routed>();
  if (exchange < 0 ||
      exchange >= static_cast<int64_t>(device->manifest().layouts.size())) {
    guarded(device, routed.get(),
            [&] { fail("the manifest has no exchange ", exchange); });
    return routed.release();
  }
  routed->exchange = static_cast<int32_t>(exchange);
  std::string error = std::exchange(device->refusal, {});
  JaggedInput placed = input;
  try {
    describeBatch(*device, input, *routed);
    placed = onDevice(device, input, *routed);
  } catch (const RuntimeError &failure) {
    if (error.empty())
      error = failure.what();
  }
  guarded(device, routed.get(), [&] {
    routeIds(*device, placed, *routed, error);
    if (routed->error.empty())
      expectIds(*device, *routed);
  });
  usable(device, routed.get());
  return routed.release();
}

} // namespace

NSRT_EXPORT void nsrt_check_weights(nsrt_device *device, int64_t exchange,
                                    int64_t num_ids, int64_t num_weights) {
  const std::vector<ExchangeSpec> &exchanges = device->manifest().exchanges;
  if (num_weights == num_ids || exchange < 0 ||
      exchange >= static_cast<int64_t>(exchanges.size()) ||
      !device->refusal.empty())
    return;
  try {
    fail(exchanges[static_cast<size_t>(exchange)].where,
         "expected one weight for each of the ", num_ids, " ids, found ",
         num_weights);
  } catch (const std::exception &failure) {
    device->refusal = failure.what();
  }
}

NSRT_EXPORT nsrt_routed *nsrt_route(nsrt_device *device, int64_t exchange,
                                    const void *ids, int64_t num_ids,
                                    const int64_t *offsets, int64_t num_offsets,
                                    const float *weights) {
  nsrt_routed *routed = nullptr;
  try {
    routed =
        route(device, exchange, {ids, num_ids, offsets, num_offsets, weights});
  } catch (const std::exception &error) {
    device->recordFailure(error.what());
    device->communicator->abort(device->error);
  }
  return routed;
}

NSRT_EXPORT nsrt_partials *nsrt_lookup(nsrt_device *device,
                                       nsrt_routed *routed) {
  nsrt_partials *result = nullptr;
  if (usable(device, routed))
    guarded(device, routed, [&] {
      auto partials = std::make_unique<nsrt_partials>();
      lookUp(*device, *routed, *partials);
      result = partials.release();
    });
  return result;
}

NSRT_EXPORT void nsrt_results_start(nsrt_device *device, nsrt_routed *routed,
                                    nsrt_partials *partials) {
  if (usable(device, routed) && partials)
    guarded(device, routed, [&] { startResults(*device, *routed, *partials); });
}

NSRT_EXPORT int64_t nsrt_result_rows(nsrt_device *, nsrt_routed *routed,
                                     int64_t lookup) {
  return hasLookup(routed, lookup)
             ? routed->lookups[static_cast<size_t>(lookup)].resultRows
             : 0;
}

NSRT_EXPORT int64_t nsrt_expect_rows(nsrt_device *device, nsrt_routed *routed,
                                     int64_t lookup, int64_t rows) {
  if (!hasLookup(routed, lookup))
    return rows;
  int64_t &found = routed->lookups[static_cast<size_t>(lookup)].resultRows;
  if (found != rows && usable(device, routed))
    guarded(device, routed, [&] {
      const ExchangeSpec &spec = device->manifest().exchanges[routed->exchange];
      fail(spec.where, "the program was compiled for ", rows,
           " rows of result ", lookup, ", found ", found,
           "; give it batches of that size, or compile a model whose batch "
           "is dynamic");
    });
  found = rows; // The caller's buffer; calls of a failed step zero all of it.
  return rows;
}

NSRT_EXPORT void nsrt_result_wait(nsrt_device *device, nsrt_routed *routed,
                                  nsrt_partials *partials, int64_t lookup,
                                  int32_t element_type, void *out) {
  int64_t dim = hasLookup(routed, lookup) ? dimOf(device, routed, lookup) : 0;
  bool written =
      usable(device, routed) && partials && guarded(device, routed, [&] {
        writeResults(device, routed, partials, lookup, {&element_type, 1}, &out,
                     &dim);
      });
  if (!written)
    clearResult(device, routed, lookup, element_type, out, dim);
}

NSRT_EXPORT void nsrt_results_wait(nsrt_device *device, nsrt_routed *routed,
                                   nsrt_partials *partials, int64_t count,
                                   const int32_t *element_types,
                                   void *const *outs,
                                   const int64_t *row_strides) {
  bool written =
      usable(device, routed) && partials && guarded(device, routed, [&] {
        writeResults(device, routed, partials, 0,
                     {element_types, static_cast<size_t>(count)}, outs,
                     row_strides);
      });
  for (int64_t i = 0; !written && i < count; ++i)
    clearResult(device, routed, i, element_types[i], outs[i], row_strides[i]);
  device->threads.rest(); // work of the caller follows
}

NSRT_EXPORT nsrt_partials *
nsrt_gradients_pack(nsrt_device *device, nsrt_routed *routed, int64_t count,
                    const int32_t *element_types, const void *const *gradients,
                    const int64_t *row_strides, int32_t lasting) {
  nsrt_partials *result = nullptr;
  if (usable(device, routed))
    guarded(device, routed, [&] {
      auto partials = std::make_unique<nsrt_partials>();
      packGradients(*device, *routed,
                    gradientsOf(device, routed, count, element_types, gradients,
                                row_strides, lasting != 0, *partials),
                    *partials);
      if (device->numDevices() > 1) // all are packed
        partials->copies.clear();
      result = partials.release();
    });
  return result;
}

NSRT_EXPORT void nsrt_gradients_start(nsrt_device *device, nsrt_routed *routed,
                                      nsrt_partials *gradients) {
  if (usable(device, routed) && gradients)
    guarded(device, routed, [&] {
      startGradients(*device, *routed, *gradients);
      fetchAhead(*device);
    });
}

NSRT_EXPORT void nsrt_weights_gradient(nsrt_device *device, nsrt_routed *routed,
                                       nsrt_partials *gradients, float *out) {
  bool written =
      usable(device, routed) && gradients && guarded(device, routed, [&] {
        if (routed->numIds > 0 && !out)
          fail("no memory for the gradients of ", routed->numIds, " weights");
        DeviceTensor tensor = DeviceTensor::write(
            *device, out, routed->numIds * static_cast<int64_t>(sizeof(float)));
        computeWeightsGradient(*device, *routed, *gradients,
                               reinterpret_cast<float *>(tensor.get()));
        tensor.finish(*device);
      });
  if (!written && routed && out)
    clear(device, out, routed->numIds * static_cast<int64_t>(sizeof(float)));
}

NSRT_EXPORT void nsrt_update(nsrt_device *device, int64_t num_exchanges,
                             nsrt_routed *const *routed,
                             nsrt_partials *const *gradients,
                             float learning_rate, int64_t step) {
  bool ready = num_exchanges >= 0;
  for (int64_t i = 0; i < num_exchanges; ++i)
    ready = usable(device, routed[i]) && gradients[i] && ready;
  if (ready)
    guarded(device, [&] {
      std::span ofIds(routed, static_cast<size_t>(num_exchanges));
      std::span ofGradients(gradients, static_cast<size_t>(num_exchanges));
      if (device->keepsGradients)
        keepGradients(*device, ofIds, ofGradients);
      else
        update(*device, ofIds, ofGradients, learning_rate, step);
    });
  device->threads.rest(); // work of the caller follows
}

NSRT_EXPORT void nsrt_tensor_copy(nsrt_device *device, void *to,
                                  const void *from, int64_t bytes) {
  bool written = guarded(device, [&] {
    if (device->tensorsOnHost)
      std::memcpy(to, from, static_cast<size_t>(bytes));
    else
      device->backend->copy(static_cast<std::byte *>(to),
                            static_cast<const std::byte *>(from), bytes);
  });
  if (!written)
    clear(device, to, bytes);
}

NSRT_EXPORT void nsrt_partials_release(nsrt_device *device,
                                       nsrt_partials *partials) {
  relayBeforeRelease(*device, nullptr, partials);
  device->forget(nullptr, partials);
  delete partials;
}

NSRT_EXPORT void nsrt_routed_release(nsrt_device *device, nsrt_routed *routed) {
  relayBeforeRelease(*device, routed, nullptr);
  device->forget(routed, nullptr);
  delete routed;
}
