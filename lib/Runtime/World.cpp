//===- World.cpp - All devices of an artifact in one process --------------===//
//
// Opening an artifact and running functions on its devices.
//
//===----------------------------------------------------------------------===//

#include "World.h"
#include "Error.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <ios>
#include <iterator>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace neuroshard::runtime {
namespace {

constexpr int maxThreadsPerDevice = 1024;

std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail("cannot read ", path.string());
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad())
    fail("cannot read ", path.string());
  return text;
}

/// Memory is handed out when it is first touched, which is too late for an
/// error message.
void checkMemory(const Manifest &manifest) {
  double needed = 0;
  for (const ShardSpec &shard : manifest.shards)
    needed += double(shardBytes(shard, manifest.tableOf(shard))) *
              double(shard.devices.size());
  double machine =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE));
  if (needed > machine)
    fail(std::fixed, std::setprecision(1), "the shards of all devices need ",
         needed / 0x1p30, " GiB, but this machine has ", machine / 0x1p30,
         " GiB of memory");
}

/// A row and the number of an id share one 64-bit key when they are sorted.
void checkRows(const Manifest &manifest) {
  for (const ShardSpec &shard : manifest.shards)
    if (shard.rows.size() > int64_t(1) << 32)
      fail("manifest: shard \"", shard.name, "\" has ", shard.rows.size(),
           " rows; at most 2^32 work");
}

int chooseThreads(int requested, int32_t devices) {
  if (requested < 0 || requested > maxThreadsPerDevice)
    fail("threads per device must be from 0 to ", maxThreadsPerDevice,
         ", found ", requested);
  if (requested > 0)
    return requested;
  return std::max(1, int(std::thread::hardware_concurrency()) / devices);
}

} // namespace

std::string runStep(Device &device, nsrt_host_function function, void **args) {
  function(args);
  std::string error = device.error;
  device.endStep(); // from here on the world may be closed
  return error;
}

std::unique_ptr<nsrt_world> openWorld(const std::string &directory,
                                      int threadsPerDevice) {
  fs::path root = fs::absolute(directory);
  Manifest manifest = parseManifest(readFile(root / "manifest.json"));
  nsrt_world::Libraries libraries;
  for (const std::string &name : manifest.programs) {
    if (name.empty() || name.find('/') != std::string::npos)
      fail("manifest: program library \"", name,
           "\" must be the name of a file beside the manifest");
    libraries.push_back(
        std::make_unique<ProgramLibrary>((root / name).string()));
  }
  return std::make_unique<nsrt_world>(std::move(manifest), std::move(libraries),
                                      threadsPerDevice);
}

} // namespace neuroshard::runtime

using namespace neuroshard::runtime;

nsrt_world::nsrt_world(Manifest manifest, Libraries programLibraries,
                       int threadsPerDevice)
    : libraries(std::move(programLibraries)) {
  if (libraries.size() != manifest.programs.size())
    fail("the manifest has ", manifest.programs.size(), " programs, found ",
         libraries.size());
  checkRows(manifest);
  checkMemory(manifest);
  int threads = chooseThreads(threadsPerDevice, manifest.numDevices);
  std::vector<ExchangeLayout> layouts = makeLayouts(manifest);
  plan = std::make_shared<const WorldPlan>(
      WorldPlan{std::move(manifest), std::move(layouts)});
  int32_t numDevices = plan->manifest.numDevices;
  group = std::make_shared<InProcessGroup>(numDevices);
  for (int32_t rank = 0; rank < numDevices; ++rank) {
    int32_t program = plan->manifest.bindings[size_t(rank)].program;
    devices.push_back(
        std::make_unique<nsrt_device>(plan, rank, *libraries[size_t(program)],
                                      group->makeCommunicator(rank), threads));
  }
}

nsrt_world::~nsrt_world() {
  if (!group)
    return;
  group->abort("the world was closed during the step");
  group->waitForIdle();
}

void nsrt_world::invokeAll(const std::string &name, void ***args) {
  if (!group->abortCause().empty())
    group->reset(); // left over from a step of single devices
  std::vector<nsrt_host_function> functions;
  for (const auto &device : devices)
    functions.push_back(device->library.find(name));
  for (const auto &device : devices)
    device->beginStep();
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
  group->reset();
  fail(cause);
}
