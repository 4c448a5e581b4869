//===- BadIds.cpp - Ids that kernels found out of range -------------------===//
//
// Decodes the words that kernels write into messages that name the table and
// the feature.
//
//===----------------------------------------------------------------------===//

#include "BadIds.h"
#include "Driver/Status.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <fcntl.h>
#include <unistd.h>

namespace neuroshard::cuda {
namespace {

constexpr size_t kMaxPlans = 4096;
constexpr uint64_t kNone = ~uint64_t{0};

} // namespace

BadIds::BadIds(const Gpu &gpu, const Binding &binding, const OwnStream &uploads)
    : gpu(gpu), binding(binding), uploads(uploads),
      words(gpu, kMaxPlans * sizeof(uint64_t), "the words of bad ids"),
      copies(gpu, kMaxPlans * sizeof(uint64_t)) {
  clear(uploads.get(), 0, kMaxPlans);
  uploads.wait();
}

void BadIds::clear(CUstream stream, size_t first, size_t count) const {
  gpu.driver.check(
      gpu.driver.memsetD8Async(words.address() + first * sizeof(uint64_t), 0xff,
                               count * sizeof(uint64_t), stream),
      "clearing the words of bad ids");
}

uint64_t *BadIds::wordOf(const StepPlan &plan) const {
  if (plan.badIdWord >= kMaxPlans)
    fail("more than ", kMaxPlans,
         " steps were captured into graphs on one device; close it and open "
         "it again");
  return words.as<uint64_t>() + plan.badIdWord;
}

std::optional<std::string>
BadIds::collect(const std::vector<std::unique_ptr<StepPlan>> &plans,
                CUstream stream) {
  const CudaDriver &driver = gpu.driver;
  if (!plans.empty()) {
    driver.check(driver.memcpyDtoHAsync(copies.data(), words.address(),
                                        plans.size() * sizeof(uint64_t),
                                        stream),
                 "reading the words of bad ids");
    clear(stream, 0, plans.size());
  }
  driver.check(driver.streamSynchronize(stream), "waiting for the step");
  std::optional<std::string> message = std::exchange(kept, std::nullopt);
  const auto *found = reinterpret_cast<const uint64_t *>(copies.data());
  for (const auto &plan : plans)
    if (!message && found[plan->badIdWord] != kNone)
      message = describe(*plan, found[plan->badIdWord]);
  return message;
}

void BadIds::keep(const StepPlan &plan) {
  gpu.waitForAll();
  uint64_t word = readWord(plan);
  if (word == kNone)
    return;
  if (!kept)
    kept = describe(plan, word);
  clear(uploads.get(), plan.badIdWord, 1);
  uploads.wait();
}

uint64_t BadIds::readWord(const StepPlan &plan) const {
  uint64_t word = kNone;
  gpu.driver.check(
      gpu.driver.memcpyDtoH(&word, reinterpret_cast<CUdeviceptr>(wordOf(plan)),
                            sizeof(word)),
      "reading the word of a bad id");
  return word;
}

std::string BadIds::describe(const StepPlan &plan, uint64_t word) const {
  auto task = static_cast<size_t>(word >> NSG_BAD_ID_POSITION_BITS);
  auto position = static_cast<int64_t>(
      word & ((uint64_t{1} << NSG_BAD_ID_POSITION_BITS) - 1));
  if (task >= plan.parts.size())
    return "a kernel reported a bad id of a part that does not exist";
  const Part &part = plan.parts[task];
  auto lookup = static_cast<size_t>(part.lookup);
  const ShardSpec &shard = binding.shardOf(
      static_cast<size_t>(binding.program.lookups[lookup].slot));
  std::ostringstream text;
  text << "device " << binding.device << ": "
       << binding.exchangeOf(lookup).where
       << describeValue(plan, task, position) << " at position " << position
       << " of the ids of " << binding.nameOf(lookup) << ", part " << task
       << ": expected rows from " << shard.rows.begin << " to "
       << shard.rows.end - 1;
  return text.str();
}

/// Copies memory that kernels have read. On the emulator that may be any host
/// memory, which may be unmapped by now: writing it to a pipe fails then, where
/// a copy would fault.
bool BadIds::copyBack(void *to, CUdeviceptr from, size_t bytes) const {
  if (gpu.driver.memcpyDtoH(to, from, bytes) == CUDA_SUCCESS)
    return true;
  int ends[2];
  if (!gpu.driver.emulated || pipe2(ends, O_CLOEXEC) != 0)
    return false;
  auto count = ssize_t(bytes);
  bool copied =
      write(ends[1], reinterpret_cast<const void *>(from), bytes) == count &&
      read(ends[0], to, bytes) == count;
  close(ends[0]);
  close(ends[1]);
  return copied;
}

/// "id N", or another text if the id is overwritten.
std::string BadIds::describeValue(const StepPlan &plan, size_t task,
                                  int64_t position) const {
  const Part &part = plan.parts[task];
  const GpuLookup &lookup =
      binding.program.lookups[static_cast<size_t>(part.lookup)];
  const ShardSpec &shard = binding.shardOf(static_cast<size_t>(lookup.slot));
  const char *unknown = "an id out of range (overwritten by now)";
  if (position < part.id_begin || position >= part.id_end)
    return unknown;
  int32_t narrow = 0;
  int64_t wide = 0;
  void *to = lookup.idBytes == 4 ? static_cast<void *>(&narrow) : &wide;
  CUdeviceptr from = reinterpret_cast<CUdeviceptr>(part.ids) +
                     static_cast<CUdeviceptr>(position * lookup.idBytes);
  bool copied = copyBack(to, from, static_cast<size_t>(lookup.idBytes));
  int64_t id = lookup.idBytes == 4 ? narrow : wide;
  if (!copied || (id >= shard.rows.begin && id < shard.rows.end))
    return unknown;
  return std::string("id ").append(std::to_string(id));
}

} // namespace neuroshard::cuda
