//===- World.cpp - An artifact's devices in this process ------------------===//
//
// Opens an artifact and runs functions on its devices.
//
//===----------------------------------------------------------------------===//

#include "World.h"
#include "Communicators/StagedCommunicator.h"
#include "Host/TensorPool.h"
#include "LoadWeights.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/CpuFeatures.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <ios>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace neuroshard::runtime {
namespace {

constexpr int kMaxThreadsPerDevice = 1024;

/// Bytes of a device's shards.
double bytesOfDevice(const Manifest &manifest, int32_t rank) {
  double bytes = 0;
  for (int32_t index : manifest.bindings[static_cast<size_t>(rank)].slots) {
    const ShardSpec &shard = manifest.shards[static_cast<size_t>(index)];
    bytes += static_cast<double>(shardBytes(shard, manifest.tableOf(shard)));
  }
  return bytes;
}

/// Compares with the machine's memory, since the operating system provides
/// pages on first use, when a step would be killed instead of failing.
void checkMemory(double needed, const std::string &whose) {
  double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (needed > machine)
    fail(std::fixed, std::setprecision(1), "the shards of ", whose, " need ",
         needed / 0x1p30, " GiB, but this machine has ", machine / 0x1p30,
         " GiB of memory");
}

/// RowKey has 32 bits for a row.
void checkRows(const Manifest &manifest) {
  for (const ShardSpec &shard : manifest.shards)
    if (shard.rows.size() > int64_t{1} << 32)
      fail("manifest: shard \"", shard.name, "\" has ", shard.rows.size(),
           " rows; at most 2^32 work");
}

int chooseThreads(int requested, int32_t devices) {
  if (requested < 0 || requested > kMaxThreadsPerDevice)
    fail("threads per device must be from 0 to ", kMaxThreadsPerDevice,
         ", found ", requested);
  if (requested > 0)
    return requested;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) /
                         devices);
}

/// The directory that was given, or else the one in the environment.
std::string directoryOr(const std::string &given) {
  const char *usual = std::getenv("NEUROSHARD_TIER_DIRECTORY");
  return given.empty() && usual ? usual : given;
}

std::unique_ptr<ProgramLibrary>
loadProgram(const fs::path &root, const Manifest &manifest, size_t program) {
  const std::string &name = manifest.programs[program].library;
  readListed(root, manifest, name); // for its hash: a damaged one may crash
  return std::make_unique<ProgramLibrary>((root / name).string());
}

} // namespace

std::string runStep(Device &device, HostFunction function, void **args) {
  device.tensorsOnHost = device.memory && function.touchesTensors;
  {
    bool isOnDevice = device.memory && !device.tensorsOnHost;
    TensorPoolScope tensors(isOnDevice ? device.buffers.get() : nullptr);
    function.call(args);
  }
  std::string error = device.error;
  device.endStep(); // from here on the world may be closed
  return error;
}

static fs::path rootOf(const std::string &directory) {
  if (directory.empty())
    fail("expected the folder of an artifact, found no path");
  return fs::absolute(directory);
}

std::unique_ptr<nsrt_world> openWorld(const std::string &directory,
                                      int threadsPerDevice,
                                      BackendFactory *backends,
                                      const std::string &tierDirectory) {
  fs::path root = rootOf(directory);
  Manifest manifest = openManifest(root);
  checkCpu(manifest);
  nsrt_world::Libraries libraries;
  for (size_t program = 0; program < manifest.programs.size(); ++program)
    libraries.push_back(loadProgram(root, manifest, program));
  auto world =
      std::make_unique<nsrt_world>(std::move(manifest), std::move(libraries),
                                   threadsPerDevice, backends, tierDirectory);
  for (const auto &device : world->devices)
    loadWeights(*device, root);
  return world;
}

std::unique_ptr<nsrt_world>
joinWorld(const std::string &directory, int threads,
          std::unique_ptr<Communicator> communicator, BackendFactory *backends,
          const std::string &tierDirectory) {
  fs::path root = rootOf(directory);
  Manifest manifest = openManifest(root);
  checkCpu(manifest);
  if (communicator->size() != manifest.numDevices)
    fail("the artifact in ", root.string(), " is for ", manifest.numDevices,
         " devices, but the group has ", communicator->size(), " ranks");
  nsrt_world::Libraries libraries(manifest.programs.size());
  auto own = static_cast<size_t>(
      manifest.bindings[static_cast<size_t>(communicator->rank())].program);
  libraries[own] = loadProgram(root, manifest, own);
  auto world = std::make_unique<nsrt_world>(
      std::move(manifest), std::move(libraries), threads,
      std::move(communicator), backends, tierDirectory);
  for (const auto &device : world->devices)
    loadWeights(*device, root);
  return world;
}

} // namespace neuroshard::runtime

using namespace neuroshard;
using namespace neuroshard::runtime;

nsrt_world::nsrt_world(Manifest manifest, Libraries programLibraries,
                       int threadsPerDevice, BackendFactory *backends,
                       const std::string &tierDirectory)
    : libraries(std::move(programLibraries)) {
  setPlan(std::move(manifest));
  int32_t numDevices = plan->manifest.numDevices;
  double bytes = 0;
  for (int32_t rank = 0; rank < numDevices; ++rank)
    bytes += bytesOfDevice(plan->manifest, rank);
  if (!backends)
    checkMemory(bytes, "all devices");
  int threads = chooseThreads(threadsPerDevice, numDevices);
  group = std::make_shared<InProcessGroup>(numDevices);
  for (int32_t rank = 0; rank < numDevices; ++rank)
    addDevice(rank, threads, group->makeCommunicator(rank), backends,
              directoryOr(tierDirectory));
}

nsrt_world::nsrt_world(Manifest manifest, Libraries programLibraries,
                       int threads, std::unique_ptr<Communicator> communicator,
                       BackendFactory *backends,
                       const std::string &tierDirectory)
    : libraries(std::move(programLibraries)) {
  setPlan(std::move(manifest));
  int32_t rank = communicator->rank();
  if (!backends)
    checkMemory(bytesOfDevice(plan->manifest, rank),
                "rank " + std::to_string(rank));
  addDevice(rank, chooseThreads(threads, 1), std::move(communicator), backends,
            directoryOr(tierDirectory));
}

void nsrt_world::setPlan(Manifest manifest) {
  if (libraries.size() != manifest.programs.size())
    fail("the manifest has ", manifest.programs.size(), " programs, found ",
         libraries.size());
  checkRows(manifest);
  plan = std::make_shared<const WorldPlan>(std::move(manifest));
}

void nsrt_world::addDevice(int32_t rank, int threads,
                           std::unique_ptr<Communicator> communicator,
                           BackendFactory *backends,
                           const std::string &tierDirectory) {
  int32_t program = plan->manifest.bindings[static_cast<size_t>(rank)].program;
  devices.push_back(std::make_unique<nsrt_device>(
      plan, rank, *libraries[static_cast<size_t>(program)],
      std::move(communicator), threads, backends, tierDirectory));
  nsrt_device &device = *devices.back();
  device.communicator->receiveInto(*device.hostBuffers);
  if (backends)
    connect(device, *backends);
}

void nsrt_world::connect(nsrt_device &device, BackendFactory &backends) {
  std::unique_ptr<Communicator> &own = device.communicator;
  if (group)
    own = backends.connect(device.rank(), *device.buffers, std::move(own));
  else if (!own->carriesDeviceMemory())
    own = std::make_unique<StagedCommunicator>(
        device.memory, *device.buffers, *device.hostBuffers, std::move(own));
}

nsrt_device *nsrt_world::device(int32_t rank) const {
  for (const auto &device : devices)
    if (device->rank() == rank)
      return device.get();
  return nullptr;
}

void nsrt_world::requireWhole(const char *what) const {
  if (!isWhole())
    fail(what, " needs all devices in this process, but it has device ",
         devices.front()->rank(), " of ", manifest().numDevices, " alone");
}

nsrt_world::~nsrt_world() {
  if (!group)
    return;
  group->abort("the world was closed during the step");
  std::lock_guard lock(invoking);
  group->waitForIdle();
}

void nsrt_world::beginSteps() {
  size_t begun = 0;
  try {
    for (; begun < devices.size(); ++begun)
      devices[begun]->beginStep();
  } catch (const RuntimeError &) {
    while (begun > 0)
      devices[--begun]->endStep();
    throw;
  }
}

void nsrt_world::invokeAll(const std::string &name, void ***args) {
  requireWhole("nsrt_invoke_all");
  std::unique_lock lock(invoking, std::try_to_lock);
  if (!lock)
    fail("a function runs on all devices already, in another thread; the world "
         "runs one function at a time");
  for (const auto &device : devices)
    device->requireIdle();
  if (!group->abortCause().empty())
    resetGroup(); // left over from a step of single devices
  std::vector<HostFunction> functions;
  for (const auto &device : devices)
    functions.push_back(device->find(name));
  beginSteps();
  std::vector<std::thread> threads;
  size_t started = 0;
  try {
    for (; started + 1 < devices.size(); ++started)
      threads.emplace_back(runStep, std::ref(*devices[started]),
                           functions[started], args[started]);
  } catch (const std::system_error &error) {
    group->abort(std::string("cannot start a thread: ") + error.what());
    for (size_t i = started; i + 1 < devices.size(); ++i)
      devices[i]->endStep();
  }
  runStep(*devices.back(), functions.back(), args[devices.size() - 1]);
  for (std::thread &thread : threads)
    thread.join();

  std::string cause = group->abortCause();
  for (const auto &device : devices)
    if (cause.empty())
      cause = device->error;
  if (cause.empty())
    return;
  resetGroup();
  fail(cause);
}

void nsrt_world::resetGroup() {
  group->reset();
  for (const auto &device : devices) {
    device->idsToRelay.clear();
    device->idsToFetch.clear();
    device->resultsToRelay.clear();
    device->kept = {};
    device->prepared.reset();
    device->order = {};
  }
}
