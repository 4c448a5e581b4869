//===- DriverABI.cpp - C interface to open and run an artifact ------------===//
//
// Turns exceptions into return values and the thread's last error.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/DriverABI.h"
#include "Export.h"
#include "Shards/DiskRates.h"
#include "Status.h"
#include "Step/CatchUp.h"
#include "Step/Steps.h"
#include "World/DeviceNames.h"
#include "World/TableAccess.h"
#include "World/World.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/Open.h"

#include <cmath>
#include <new>
#include <type_traits>

using namespace neuroshard;
using namespace neuroshard::runtime;

namespace {

nsrt_shard_info infoOf(const runtime::Shard &shard) {
  const ShardSpec &spec = shard.spec();
  ElementType type = shard.table().elementType;
  nsrt_shard_info info{};
  info.name = spec.name.c_str();
  info.table = spec.table;
  info.num_copies = static_cast<int32_t>(spec.devices.size());
  info.row_begin = spec.rows.begin;
  info.row_end = spec.rows.end;
  info.col_begin = spec.cols.begin;
  info.col_end = spec.cols.end;
  info.weights = shard.allWeights();
  info.weight_stride = shard.weightStrideBytes();
  if (!isQuantized(type))
    info.weight_stride /= elementBytes(type);
  OptimizerStates states = shard.table().visibleStates();
  info.num_states = states.count();
  info.num_row_states = states.perRow;
  for (size_t i = 0; i < static_cast<size_t>(info.num_states); ++i) {
    info.states[i] = shard.allState(i);
    info.state_stride[i] = shard.stateStride(i);
  }
  info.on_host = shard.cache() != nullptr;
  return info;
}

static_assert(std::extent_v<decltype(nsrt_table_info::state_width)> ==
                  kMaxStates &&
              std::extent_v<decltype(nsrt_shard_info::states)> == kMaxStates &&
              std::extent_v<decltype(nsrt_shard_info::state_stride)> ==
                  kMaxStates);

std::string textOr(const char *text) { return text ? text : ""; }

runtime::Shard &shardOf(nsrt_device *device, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= device->slots.size())
    fail("device ", device->rank(), " has ", device->slots.size(),
         " shards; there is no shard ", index);
  return device->slots[static_cast<size_t>(index)];
}

bool isTable(const nsrt_world *world, int32_t table) {
  return table >= 0 &&
         static_cast<size_t>(table) < world->manifest().tables.size();
}

bool isBufferKind(int32_t kind) {
  return kind >= 0 && static_cast<size_t>(kind) < kNumBufferKinds;
}

bool isPhase(int32_t phase) {
  return phase >= 0 && static_cast<size_t>(phase) < kNumPhases;
}

} // namespace

static thread_local std::string lastError;

void runtime::setLastError(const char *text) noexcept {
  try {
    lastError = text;
  } catch (...) {
    lastError = "no memory"; // fits into the string itself
  }
}

NSRT_EXPORT const char *nsrt_last_error(void) { return lastError.c_str(); }

NSRT_EXPORT nsrt_world *nsrt_world_open(const char *directory,
                                        int32_t threads_per_device) {
  return orElse<nsrt_world *>(nullptr, [&] {
    return openWorld(textOr(directory), threads_per_device, nullptr).release();
  });
}

NSRT_EXPORT BackendFactory *
nsrt_make_backends(const char *directory, const char *device, IdCheck check) {
  return orElse<BackendFactory *>(nullptr, [&] {
    return makeBackends(directory, device, check).release();
  });
}

NSRT_EXPORT void nsrt_free_backends(BackendFactory *backends) {
  delete backends;
}

NSRT_EXPORT nsrt_world *nsrt_world_open_on(const char *directory,
                                           int32_t threads_per_device,
                                           BackendFactory *backends,
                                           const char *tier_directory) {
  return orElse<nsrt_world *>(nullptr, [&] {
    return openWorld(textOr(directory), threads_per_device, backends,
                     textOr(tier_directory))
        .release();
  });
}

NSRT_EXPORT nsrt_world *nsrt_world_create(const char *manifest_json,
                                          const nsrt_program *const *programs,
                                          int32_t num_programs,
                                          int32_t threads_per_device) {
  return orElse<nsrt_world *>(nullptr, [&] {
    nsrt_world::Libraries libraries;
    for (int32_t i = 0; i < num_programs; ++i)
      libraries.push_back(std::make_unique<ProgramLibrary>(*programs[i]));
    return std::make_unique<nsrt_world>(parseManifest(manifest_json),
                                        std::move(libraries),
                                        threads_per_device, nullptr)
        .release();
  });
}

NSRT_EXPORT int32_t nsrt_world_register(nsrt_world *world, int32_t program,
                                        const char *name,
                                        nsrt_host_function function) {
  return status([&] {
    if (program < 0 || static_cast<size_t>(program) >= world->libraries.size())
      fail("there is no program ", program);
    world->libraries[static_cast<size_t>(program)]->add(name, function);
  });
}

NSRT_EXPORT nsrt_world *nsrt_world_join(const char *directory, int32_t threads,
                                        Communicator *communicator,
                                        BackendFactory *backends,
                                        const char *tier_directory) {
  std::unique_ptr<Communicator> owned(communicator);
  return orElse<nsrt_world *>(nullptr, [&] {
    return joinWorld(directory, threads, std::move(owned), backends,
                     textOr(tier_directory))
        .release();
  });
}

NSRT_EXPORT void nsrt_world_close(nsrt_world *world) { delete world; }

NSRT_EXPORT int32_t nsrt_world_num_devices(const nsrt_world *world) {
  return world->manifest().numDevices;
}

NSRT_EXPORT nsrt_device *nsrt_world_device(nsrt_world *world, int32_t rank) {
  return world->device(rank);
}

NSRT_EXPORT int32_t nsrt_world_reset(nsrt_world *world) {
  return status([&] {
    world->requireWhole("nsrt_world_reset");
    for (const auto &device : world->devices)
      if (device->inStep)
        fail("device ", device->rank(), " is in a step");
    world->resetGroup();
  });
}

NSRT_EXPORT int32_t nsrt_world_touch_memory(nsrt_world *world) {
  return status([&] {
    for (const auto &device : world->devices)
      for (runtime::Shard &shard : device->slots)
        shard.touchPages(device->threads);
  });
}

NSRT_EXPORT int32_t nsrt_world_num_tables(const nsrt_world *world) {
  return static_cast<int32_t>(world->manifest().tables.size());
}

NSRT_EXPORT int32_t nsrt_world_find_table(const nsrt_world *world,
                                          const char *name) {
  const auto &tables = world->manifest().tables;
  for (size_t i = 0; i < tables.size(); ++i)
    if (tables[i].name == name)
      return static_cast<int32_t>(i);
  return -1;
}

NSRT_EXPORT int32_t nsrt_world_table_info(const nsrt_world *world,
                                          int32_t table,
                                          nsrt_table_info *info) {
  return status([&] {
    if (!isTable(world, table))
      fail("there is no table ", table);
    const TableSpec &spec =
        world->manifest().tables[static_cast<size_t>(table)];
    int states = spec.visibleStates().count();
    *info = {spec.name.c_str(),
             spec.rows,
             spec.dim,
             static_cast<int32_t>(spec.elementType),
             states,
             {}};
    for (int32_t state = 0; state < states; ++state)
      info->state_width[state] = stateWidth(world->manifest(), table, state);
  });
}

NSRT_EXPORT int32_t nsrt_table_write(nsrt_world *world, int32_t table,
                                     int64_t row_begin, int64_t row_end,
                                     const void *values) {
  return status([&] {
    writeTable(*world, table, {row_begin, row_end},
               static_cast<const std::byte *>(values));
  });
}

NSRT_EXPORT int32_t nsrt_table_read(nsrt_world *world, int32_t table,
                                    int64_t row_begin, int64_t row_end,
                                    void *values) {
  return status([&] {
    readTable(*world, table, {row_begin, row_end},
              static_cast<std::byte *>(values));
  });
}

NSRT_EXPORT int32_t nsrt_state_write(nsrt_world *world, int32_t table,
                                     int32_t state, int64_t row_begin,
                                     int64_t row_end, const float *values) {
  return status(
      [&] { writeState(*world, table, state, {row_begin, row_end}, values); });
}

NSRT_EXPORT int32_t nsrt_state_read(nsrt_world *world, int32_t table,
                                    int32_t state, int64_t row_begin,
                                    int64_t row_end, float *values) {
  return status(
      [&] { readState(*world, table, state, {row_begin, row_end}, values); });
}

NSRT_EXPORT int32_t nsrt_table_initialize(nsrt_world *world, int32_t table,
                                          uint64_t seed) {
  return status([&] {
    if (table != -1)
      return initializeTable(*world, table, seed);
    for (int32_t i = 0; i < nsrt_world_num_tables(world); ++i)
      initializeTable(*world, i, seed);
  });
}

NSRT_EXPORT int32_t nsrt_device_num_shards(const nsrt_device *device) {
  return static_cast<int32_t>(device->slots.size());
}

NSRT_EXPORT int32_t nsrt_device_shard(nsrt_device *device, int32_t index,
                                      nsrt_shard_info *info) {
  return status([&] {
    runtime::Shard &shard = shardOf(device, index);
    catchUpAll(*device);
    shard.expose();
    *info = infoOf(shard);
  });
}

NSRT_EXPORT int32_t nsrt_device_cache(nsrt_device *device, int32_t index,
                                      nsrt_cache_figures *figures) {
  return status([&] {
    const runtime::Shard &shard = shardOf(device, index);
    *figures = {};
    figures->name = shard.spec().name.c_str();
    if (!shard.cache())
      return;
    CacheFigures sums = shard.cache()->figures();
    figures->places = shard.cache()->capacity();
    figures->batches = sums.batches;
    figures->rows = sums.rows;
    figures->hits = sums.hits;
    figures->written = sums.written;
    figures->most_spilled = sums.mostSpilled;
    figures->wait_nanoseconds = sums.waitNanoseconds;
  });
}

NSRT_EXPORT int32_t nsrt_measure_disk(const char *directory, int64_t bytes,
                                      nsrt_disk_rates *rates) {
  return status([&] {
    DiskRates measured = measureDisk(directory, bytes);
    *rates = {measured.transfersPerSecond, measured.bytesPerSecond};
  });
}

NSRT_EXPORT int32_t nsrt_device_settle(nsrt_device *device) {
  return status([&] {
    finishDeferred(*device);
    device->backend->check();
  });
}

NSRT_EXPORT int32_t nsrt_device_is_capturing(const nsrt_device *device) {
  return orElse(0, [&] { return int(device->backend->isCapturing()); });
}

NSRT_EXPORT int32_t nsrt_device_set_step(nsrt_device *device,
                                         float learning_rate, int64_t step) {
  return status([&] {
    device->backend->setStepSizes(stepSizesOf(*device, learning_rate, step));
  });
}

NSRT_EXPORT int32_t nsrt_device_refuse(nsrt_device *device, const char *text) {
  return status([&] { device->refusal = text; });
}

NSRT_EXPORT int32_t nsrt_device_note_purpose(nsrt_device *device,
                                             int64_t purpose) {
  return status([&] { device->order.addPurpose(purpose); });
}

NSRT_EXPORT int32_t nsrt_device_use_stream(nsrt_device *device, void *stream) {
  return status([&] {
    device->backend->useStream(stream);
    if (device->backend->isCapturing())
      device->buffers->keepAll();
  });
}

NSRT_EXPORT int32_t nsrt_tensor_read(nsrt_device *device, void *to,
                                     const void *tensor, int64_t bytes) {
  return status([&] { device->read(to, tensor, bytes); });
}

NSRT_EXPORT int32_t nsrt_tensor_write(nsrt_device *device, void *tensor,
                                      const void *from, int64_t bytes) {
  return status([&] { device->write(tensor, from, bytes); });
}

NSRT_EXPORT int32_t nsrt_invoke(nsrt_device *device, const char *name,
                                void **args) {
  return status([&] {
    HostFunction function{};
    try {
      function = device->find(name);
    } catch (const RuntimeError &error) {
      device->recordFailure(error.what());
      device->communicator->abort(device->error); // the others wait for it
      throw;
    }
    device->beginStep();
    std::string error = runStep(*device, function, args);
    if (!error.empty())
      fail(error);
  });
}

NSRT_EXPORT int32_t nsrt_invoke_all(nsrt_world *world, const char *name,
                                    void ***args) {
  return status([&] { world->invokeAll(name, args); });
}

NSRT_EXPORT int32_t nsrt_device_rank(const nsrt_device *device) {
  return device->rank();
}

NSRT_EXPORT int32_t nsrt_device_group_ended(const nsrt_device *device) {
  return device->communicator->ended();
}

NSRT_EXPORT int32_t nsrt_device_status(const nsrt_device *device) {
  return device->failed();
}

NSRT_EXPORT const char *nsrt_device_error(const nsrt_device *device) {
  return device->error.c_str();
}

NSRT_EXPORT int32_t nsrt_num_phases(void) { return kNumPhases; }

NSRT_EXPORT const char *nsrt_phase_name(int32_t phase) {
  return isPhase(phase) ? kPhases[static_cast<size_t>(phase)].phase : nullptr;
}

NSRT_EXPORT const char *nsrt_phase_term(int32_t phase) {
  return isPhase(phase) ? kPhases[static_cast<size_t>(phase)].term : nullptr;
}

NSRT_EXPORT void nsrt_observe_phases(PhaseObserver *observer) {
  phaseObserver = observer;
}

NSRT_EXPORT double nsrt_device_phase_ms(const nsrt_device *device,
                                        int32_t phase) {
  return isPhase(phase)
             ? static_cast<double>(
                   device->figures.nanoseconds[static_cast<size_t>(phase)]) *
                   1e-6
             : 0;
}

NSRT_EXPORT int64_t nsrt_device_phase_bytes(const nsrt_device *device,
                                            int32_t phase) {
  return isPhase(phase) ? device->figures.sentBytes[static_cast<size_t>(phase)]
                        : 0;
}

NSRT_EXPORT void nsrt_device_reset_phases(nsrt_device *device) {
  device->figures = {};
}

NSRT_EXPORT int64_t nsrt_device_memory_bytes(const nsrt_device *device,
                                             int32_t kind) {
  if (kind == NSRT_MEMORY_BUFFERS)
    return device->buffers->heldBytes();
  int64_t bytes = 0;
  for (const runtime::Shard &shard : device->slots) {
    if (kind == NSRT_MEMORY_WEIGHTS)
      bytes += shard.weightBytes();
    if (kind == NSRT_MEMORY_STATE)
      bytes += shard.stateBytes();
  }
  return bytes;
}

NSRT_EXPORT int32_t nsrt_num_buffer_kinds(void) { return kNumBufferKinds; }

NSRT_EXPORT const char *nsrt_buffer_kind_name(int32_t kind) {
  return isBufferKind(kind) ? bufferName(static_cast<BufferKind>(kind))
                            : nullptr;
}

NSRT_EXPORT int64_t nsrt_device_buffer_bytes(const nsrt_device *device,
                                             int32_t kind) {
  if (!isBufferKind(kind))
    return 0;
  auto asked = static_cast<BufferKind>(kind);
  int64_t bytes = device->buffers->askedBytes()[asked];
  if (device->hostBuffers != device->buffers)
    bytes += device->hostBuffers->askedBytes()[asked];
  return bytes;
}
