//===- Device.cpp - One device --------------------------------------------===//
//
// Allocates the shards; begins, ends and fails steps.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Cpu/CpuBackend.h"
#include "ProgramCheck.h"
#include "ProgramLibrary.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/IdHeader.h"

#include <cstring>
#include <utility>

using namespace neuroshard;
using namespace neuroshard::runtime;

WorldPlan::WorldPlan(Manifest contents)
    : manifest(std::move(contents)), groups(manifest),
      needsNormExchange(manifest.tablesWithNormExchange()),
      hasCopies(manifest.tablesWithCopies()),
      summedCopies(manifest.trainedCopies()),
      driftingCopies(manifest.driftingCopies()),
      gradientFactors(manifest.gradientFactors()),
      headerNumbers(idHeaderNumbers(manifest.layouts)),
      hasCaches(manifest.hasRowCaches()) {}

nsrt_device::nsrt_device(std::shared_ptr<const WorldPlan> worldPlan,
                         int32_t rank, const ProgramLibrary &programLibrary,
                         std::unique_ptr<Communicator> groupEnd, int numThreads,
                         BackendFactory *backends,
                         const std::string &tierDirectory)
    : plan(std::move(worldPlan)), ownRank(rank), library(programLibrary),
      program(programLibrary.program()), communicator(std::move(groupEnd)),
      threads(numThreads),
      memory(backends ? backends->makeMemory(rank) : nullptr),
      hostBuffers(std::make_shared<BufferPool>()),
      buffers(memory ? std::make_shared<BufferPool>(memory) : hostBuffers) {
  checkProgram(manifest(), rank, program);
  for (int32_t shard : manifest().bindings[static_cast<size_t>(rank)].slots) {
    const ShardSpec &spec = manifest().shards[static_cast<size_t>(shard)];
    if (spec.hasRowCache() && !io)
      io = std::make_unique<IoQueue>();
    slots.emplace_back(spec, manifest().tableOf(spec),
                       ShardPlaces{threads, memory, tierDirectory, io.get()});
  }
  backend = std::make_unique<CpuBackend>(manifest(), program, slots,
                                         *hostBuffers, threads);
  if (!backends)
    return;
  std::vector<SlotMemory> slotsInMemory = slotMemory();
  backend = backends->make(rank, {slotsInMemory, *buffers, std::move(backend)});
  for (runtime::Shard &slot : slots)
    if (RowCache *cache = slot.cache())
      cache->copyBy(backend->rowCopies());
}

nsrt_device::~nsrt_device() {
  for (runtime::Shard &slot : slots) // the backend copies rows
    if (RowCache *cache = slot.cache())
      cache->finish();
}

std::vector<SlotMemory> nsrt_device::slotMemory() const {
  std::vector<SlotMemory> memory;
  for (const auto &slot : slots)
    memory.push_back(
        {slot.weights(), {slot.state(0), slot.state(1), slot.state(2)}});
  return memory;
}

void nsrt_device::read(void *to, const void *from, int64_t bytes) const {
  if (memory)
    memory->read(to, static_cast<const std::byte *>(from), bytes);
  else if (bytes > 0)
    std::memcpy(to, from, static_cast<size_t>(bytes));
}

void nsrt_device::write(void *to, const void *from, int64_t bytes) const {
  if (memory)
    memory->write(static_cast<std::byte *>(to), from, bytes);
  else if (bytes > 0)
    std::memcpy(to, from, static_cast<size_t>(bytes));
}

static void failBusy(int32_t rank) {
  fail("device ", rank,
       " is already in a step; a device runs one function at a time");
}

HostFunction nsrt_device::find(const std::string &name) const {
  HostFunction found{library.find(name)};
  for (const FunctionSpec &function : manifest().functions)
    if (function.name == name)
      found.touchesTensors = function.touchesTensors;
  return found;
}

void nsrt_device::requireIdle() const {
  if (inStep)
    failBusy(ownRank);
}

void nsrt_device::beginStep() {
  if (inStep.exchange(true))
    failBusy(ownRank);
  error.clear();
  communicator->enterStep();
}

void nsrt_device::endStep() noexcept {
  inStep = false;
  communicator->leaveStep(); // last: the world may be closed after it
}

void nsrt_device::recordFailure(const std::string &cause) noexcept {
  if (failed())
    return;
  try {
    error = cause.empty() ? "the step failed" : cause;
  } catch (...) {
    error = "no memory"; // fits into the string itself
  }
}

void nsrt_device::forget(const nsrt_routed *routed,
                         const nsrt_partials *partials) {
  std::erase_if(deferred, [&](const auto &lookup) {
    return lookup.first == routed || lookup.second == partials;
  });
  std::erase(idsToRelay, routed);
  std::erase(idsToFetch, routed);
  std::erase_if(resultsToRelay, [&](const auto &results) {
    return results.first == routed || results.second == partials;
  });
}
