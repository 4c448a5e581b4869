//===- Device.cpp - One device of a plan on a GPU -------------------------===//
//
// Opens a device; initial values, memory and bad ids.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Driver/Status.h"

#include <algorithm>
#include <thread>
#include <utility>

using namespace neuroshard::runtime;

namespace neuroshard::cuda {
namespace {

std::vector<ShardMemory> makeTables(const Gpu &gpu, const Binding &binding,
                                    const nsc_options &options) {
  const nsc_slot_memory *given = options.slots;
  auto count = static_cast<size_t>(options.num_slots);
  if (given && count != 0 && count != binding.numSlots())
    fail("expected memory for ", binding.numSlots(), " slots, those of device ",
         binding.device, ", found it for ", options.num_slots);
  std::vector<ShardMemory> tables;
  tables.reserve(binding.numSlots());
  for (size_t slot = 0; slot < binding.numSlots(); ++slot)
    tables.emplace_back(gpu, binding.shardOf(slot), binding.tableOf(slot),
                        given ? &given[slot] : nullptr);
  return tables;
}

int initializerThreads() {
  return static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
}

} // namespace

Device::Device(const Gpu &gpu, const std::string &directory, Binding read,
               const nsc_options &options, IdCheck idCheck)
    : gpu(gpu), binding(std::move(read)), kernels(gpu, binding, directory),
      keys(binding), tables(makeTables(gpu, binding, options)),
      idCheck(idCheck), side(gpu), uploads(gpu), ring(gpu),
      stepMemory(gpu, binding, keys, uploads), plans(gpu), sumsUpdate(gpu),
      badIds(gpu, binding, uploads), learningRates(gpu, binding) {
  for (const ShardMemory &table : tables)
    weights.push_back(table.weights());
  if (options.initialize)
    initialize(options.seed);
}

void Device::initialize(uint64_t seed) {
  ThreadPool threads(initializerThreads());
  for (ShardMemory &table : tables)
    table.initialize(seed, threads);
}

nsc_memory Device::memoryBytes() const {
  nsc_memory memory = {};
  for (const ShardMemory &table : tables) {
    memory.weights += table.weightBytes();
    for (int state = 0; state < table.numStates(); ++state)
      memory.states += table.stateBytes(state);
  }
  memory.step = stepMemory.bytes();
  memory.arrays =
      badIds.bytes() + learningRates.bytes() + sumsUpdate.allocatedBytes();
  for (const auto &plan : plans.all())
    memory.arrays += plan->allocatedBytes();
  return memory;
}

std::optional<std::string> Device::check(CUstream stream) {
  if (gpu.isCapturing(stream))
    fail("nsc_check waits for the GPU, which a stream that is captured into a "
         "graph cannot do");
  return badIds.collect(plans.all(), stream);
}

} // namespace neuroshard::cuda
