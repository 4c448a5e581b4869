//===- CudaABI.cpp - C interface of the GPU runtime -----------------------===//
//
// Checks arguments, makes the context current, turns exceptions into statuses.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/RuntimeCuda/CudaABI.h"
#include "Driver/Status.h"
#include "Guard.h"
#include "Step/Binding.h"
#include "Step/Device.h"
#include "Step/LookupParts.h"

#include <algorithm>
#include <memory>
#include <type_traits>

using namespace neuroshard;
using namespace neuroshard::cuda;

struct nsc_device {
  nsc_device(const CudaDriver &driver, int32_t ordinal)
      : gpu(driver, ordinal) {}

  Gpu gpu;
  std::unique_ptr<Device> device;
  std::string error;
};

namespace {

/// Runs a function on a device with its context current.
template <typename Function>
nsc_status onDevice(nsc_device *handle, Function function) noexcept {
  if (!handle)
    return guard(threadError(), [] { fail("the device is null"); });
  return guard(handle->error, [&] {
    ContextScope scope(handle->gpu);
    RelaxedCapture relaxed(handle->gpu);
    function(*handle->device);
  });
}

template <typename T>
std::span<T> spanOf(T *items, int32_t count, const char *what) {
  if (count < 0 || (count > 0 && !items))
    fail("expected ", what, ", found ", count, items ? "" : " at null");
  return {items, static_cast<size_t>(count)};
}

std::vector<Part> partsOf(const nsc_part *parts, int32_t count) {
  std::vector<Part> result;
  for (const nsc_part &part : spanOf(parts, count, "parts"))
    result.push_back({part});
  return result;
}

CUstream streamOf(void *stream) { return static_cast<CUstream>(stream); }

ShardMemory &tableOf(Device &device, int32_t slot) {
  if (slot < 0 || static_cast<size_t>(slot) >= device.tables.size())
    fail("there is no slot ", slot, "; the device has ", device.tables.size());
  return device.tables[static_cast<size_t>(slot)];
}

/// Whoever calls the lookups and updates of one GPU himself brings no row up.
void requireNoCatchUp(const Binding &binding) {
  for (size_t slot = 0; slot < binding.numSlots(); ++slot) {
    const TableSpec &table = binding.tableOf(slot);
    if (table.trained() && table.optimizer->catchUp)
      fail("table \"", table.name,
           "\" catches up (catch_up), which nsc_open cannot train; open the "
           "artifact by nsrt_world_open_on, or train without catch_up");
  }
}

const void *checkedValues(const void *values, int64_t begin, int64_t end) {
  if (!values && end > begin)
    fail("the values are null");
  return values;
}

} // namespace

NSC_EXPORT int32_t nsc_version(void) { return NSC_VERSION; }

NSC_EXPORT nsc_status nsc_available(void) {
  return guard(threadError(), [] { CudaDriver::get(); });
}

NSC_EXPORT const char *nsc_last_error(const nsc_device *handle) {
  return handle ? handle->error.c_str() : threadError().c_str();
}

NSC_EXPORT nsc_status nsc_open(const char *directory, int32_t planDevice,
                               int32_t cudaOrdinal, const nsc_options *options,
                               nsc_device **result) {
  return guard(threadError(), [&] {
    checked(result, "the place for the device") = nullptr;
    checked(directory, "the directory");
    nsc_options used = {};
    used.initialize = 1;
    if (options)
      used = *options;
    Binding binding = readBinding(directory, planDevice);
    requireNoCatchUp(binding);
    auto handle = std::make_unique<nsc_device>(CudaDriver::get(), cudaOrdinal);
    ContextScope scope(handle->gpu);
    RelaxedCapture relaxed(handle->gpu);
    handle->device = std::make_unique<Device>(handle->gpu, directory,
                                              std::move(binding), used);
    *result = handle.release();
  });
}

NSC_EXPORT nsc_status nsc_check_artifact(const char *directory,
                                         int32_t planDevice) {
  return guard(threadError(), [&] {
    readBinding(&checked(directory, "the directory"), planDevice);
  });
}

NSC_EXPORT void nsc_close(nsc_device *handle) {
  if (!handle)
    return;
  // A garbage collector may close while another thread captures a graph.
  guard(threadError(), [&] {
    ContextScope scope(handle->gpu);
    RelaxedCapture relaxed(handle->gpu);
    handle->gpu.waitForAll();
  });
  guard(threadError(), [&] {
    ContextScope scope(handle->gpu);
    RelaxedCapture relaxed(handle->gpu);
    handle->device.reset();
  });
  delete handle;
}

NSC_EXPORT nsc_status nsc_get_info(nsc_device *handle, nsc_info *result) {
  return onDevice(handle, [&](Device &device) {
    nsc_info info = {};
    info.gpu = device.gpu.name.c_str();
    info.image = device.kernels.imageFile().c_str();
    info.module = device.binding.program.module.c_str();
    info.capability = device.gpu.capability;
    info.driver = device.gpu.driverVersion;
    info.num_slots = static_cast<int32_t>(device.binding.numSlots());
    info.num_lookups = static_cast<int32_t>(device.binding.numLookups());
    info.num_exchanges =
        static_cast<int32_t>(device.binding.manifest.exchanges.size());
    for (int32_t slot : device.keys.updated)
      info.two_phase |=
          device.binding.program.slots[static_cast<size_t>(slot)].twoPhase;
    checked(result, "the info") = info;
  });
}

NSC_EXPORT nsc_status nsc_get_memory(nsc_device *handle, nsc_memory *result) {
  return onDevice(handle, [&](Device &device) {
    checked(result, "the memory") = device.memoryBytes();
  });
}

NSC_EXPORT nsc_status nsc_get_slot(nsc_device *handle, int32_t slot,
                                   nsc_slot *result) {
  return onDevice(handle, [&](Device &device) {
    const ShardMemory &table = tableOf(device, slot);
    const GpuSlot &spec =
        device.binding.program.slots[static_cast<size_t>(slot)];
    nsc_slot info = {};
    info.table = table.table().name.c_str();
    info.shard = table.shard().name.c_str();
    info.row_begin = table.shard().rows.begin;
    info.row_end = table.shard().rows.end;
    info.col_begin = table.shard().cols.begin;
    info.col_end = table.shard().cols.end;
    info.element_type = static_cast<int32_t>(table.table().elementType);
    info.num_states = table.numStates();
    info.num_row_states = table.table().states().perRow;
    info.trainable = spec.trainable();
    info.two_phase = spec.twoPhase;
    info.weight_stride =
        table.weightStrideBytes() / elementBytes(table.table().elementType);
    info.weight_bytes = table.weightBytes();
    info.weights = table.weights();
    static_assert(std::extent_v<decltype(nsc_slot::states)> == kMaxStates);
    for (int32_t state = 0; state < info.num_states; ++state) {
      info.state_stride[state] = table.stateStride(state);
      info.state_bytes[state] = table.stateBytes(state);
      info.states[state] = table.state(static_cast<size_t>(state));
    }
    checked(result, "the slot") = info;
  });
}

NSC_EXPORT nsc_status nsc_get_lookup(nsc_device *handle, int32_t index,
                                     nsc_lookup *result) {
  return onDevice(handle, [&](Device &device) {
    const Binding &binding = device.binding;
    if (index < 0 || static_cast<size_t>(index) >= binding.numLookups())
      fail("there is no lookup ", index, "; the device has ",
           binding.numLookups());
    auto lookup = static_cast<size_t>(index);
    const GpuLookup &spec = binding.program.lookups[lookup];
    nsc_lookup info = {};
    info.input = binding.exchangeOf(lookup).input.c_str();
    info.feature_index = binding.specOf(lookup).feature;
    info.feature = binding.exchangeOf(lookup)
                       .features[static_cast<size_t>(info.feature_index)]
                       .c_str();
    info.exchange = binding.bound().lookups[lookup].exchange;
    info.slot = spec.slot;
    info.id_bytes = spec.idBytes;
    info.pooled = spec.pooled;
    info.mean = spec.mean;
    info.weighted = spec.weighted;
    info.output_type = static_cast<int32_t>(spec.output);
    info.dim = binding.program.slots[static_cast<size_t>(spec.slot)].dim;
    checked(result, "the lookup") = info;
  });
}

NSC_EXPORT nsc_status nsc_initialize(nsc_device *handle, uint64_t seed) {
  return onDevice(handle, [&](Device &device) { device.initialize(seed); });
}

NSC_EXPORT nsc_status nsc_read_weights(nsc_device *handle, int32_t slot,
                                       int64_t begin, int64_t end,
                                       void *values) {
  return onDevice(handle, [&](Device &device) {
    checkedValues(values, begin, end);
    tableOf(device, slot).readWeights(begin, end, values);
  });
}

NSC_EXPORT nsc_status nsc_write_weights(nsc_device *handle, int32_t slot,
                                        int64_t begin, int64_t end,
                                        const void *values) {
  return onDevice(handle, [&](Device &device) {
    checkedValues(values, begin, end);
    tableOf(device, slot).writeWeights(begin, end, values);
  });
}

NSC_EXPORT nsc_status nsc_read_state(nsc_device *handle, int32_t slot,
                                     int32_t state, int64_t begin, int64_t end,
                                     float *values) {
  return onDevice(handle, [&](Device &device) {
    checkedValues(values, begin, end);
    tableOf(device, slot).readState(state, begin, end, values);
  });
}

NSC_EXPORT nsc_status nsc_write_state(nsc_device *handle, int32_t slot,
                                      int32_t state, int64_t begin, int64_t end,
                                      const float *values) {
  return onDevice(handle, [&](Device &device) {
    checkedValues(values, begin, end);
    tableOf(device, slot).writeState(state, begin, end, values);
  });
}

NSC_EXPORT nsc_status nsc_make_parts(nsc_device *handle,
                                     const nsc_input *inputs, int32_t numInputs,
                                     const nsc_output *outputs,
                                     int32_t numOutputs, nsc_part *parts) {
  return onDevice(handle, [&](Device &device) {
    auto count = static_cast<int32_t>(device.binding.numLookups());
    std::span<nsc_part> to = spanOf(parts, count, "parts");
    std::vector<Part> made =
        makeParts(device.binding, spanOf(inputs, numInputs, "inputs"),
                  spanOf(outputs, numOutputs, "outputs"));
    std::copy(made.begin(), made.end(), to.begin());
  });
}

NSC_EXPORT nsc_status nsc_forward(nsc_device *handle, const nsc_part *parts,
                                  int32_t numParts, int32_t training,
                                  void *stream) {
  return onDevice(handle, [&](Device &device) {
    device.forward(partsOf(parts, numParts), training, streamOf(stream));
  });
}

NSC_EXPORT nsc_status nsc_prepare(nsc_device *handle, const nsc_part *parts,
                                  int32_t numParts, int32_t training,
                                  void *stream) {
  return onDevice(handle, [&](Device &device) {
    device.prepare(partsOf(parts, numParts), training, streamOf(stream));
  });
}

NSC_EXPORT nsc_status nsc_set_step(nsc_device *handle, float learningRate,
                                   int64_t step, void *stream) {
  return onDevice(handle, [&](Device &device) {
    device.setStep(learningRate, step, streamOf(stream));
  });
}

NSC_EXPORT nsc_status nsc_backward(nsc_device *handle,
                                   const nsc_gradient *gradients,
                                   int32_t numGradients, void *stream) {
  return onDevice(handle, [&](Device &device) {
    device.backward(spanOf(gradients, numGradients, "gradients"),
                    streamOf(stream));
  });
}

NSC_EXPORT nsc_status nsc_get_norms(nsc_device *handle, int32_t slot,
                                    nsc_norms *result) {
  return onDevice(handle, [&](Device &device) {
    tableOf(device, slot);
    checked(result, "the norms") = device.normsOf(slot);
  });
}

NSC_EXPORT nsc_status nsc_backward_apply(nsc_device *handle, void *stream) {
  return onDevice(handle,
                  [&](Device &device) { device.applyNorms(streamOf(stream)); });
}

NSC_EXPORT nsc_status nsc_check(nsc_device *handle, void *stream) {
  return onDevice(handle, [&](Device &device) {
    if (std::optional<std::string> bad = device.check(streamOf(stream)))
      failWith(NSC_BAD_ID, *bad);
  });
}
