//===- World.h - An artifact's devices in this process ---------*- C++ -*-===//
//
// The object behind nsrt_world: all devices of an artifact, or one of them
// whose others are in other processes.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_WORLD_WORLD_H
#define NEUROSHARD_LIB_RUNTIME_WORLD_WORLD_H

#include "Communicators/InProcessCommunicator.h"
#include "Device/Device.h"
#include "Device/ProgramLibrary.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct nsrt_world {
  using Libraries =
      std::vector<std::unique_ptr<neuroshard::runtime::ProgramLibrary>>;

  /// Throws a RuntimeError if programs and manifest do not fit, or the machine
  /// has not enough memory. Null `backends`: those on threads of the host.
  /// `tierDirectory`: of the files of shards in tier "ssd"; "": the one that
  /// the environment names.
  nsrt_world(neuroshard::Manifest manifest, Libraries libraries,
             int threadsPerDevice,
             neuroshard::runtime::BackendFactory *backends,
             const std::string &tierDirectory = "");
  /// The same for one device, that of the communicator's rank.
  nsrt_world(neuroshard::Manifest manifest, Libraries libraries, int threads,
             std::unique_ptr<neuroshard::runtime::Communicator> communicator,
             neuroshard::runtime::BackendFactory *backends,
             const std::string &tierDirectory = "");
  /// Fails running steps and waits until they have ended.
  ~nsrt_world();

  const neuroshard::Manifest &manifest() const { return plan->manifest; }

  /// Null if the device is in another process.
  nsrt_device *device(int32_t rank) const;
  /// Whether all devices are in this process.
  bool isWhole() const { return group != nullptr; }
  /// Throws a RuntimeError that says that `what` needs all devices.
  void requireWhole(const char *what) const;

  /// Runs a function on all devices. Throws a RuntimeError with the cause of
  /// the first failure.
  void invokeAll(const std::string &name, void ***args);
  /// Lets all devices go on after a failed step.
  void resetGroup();

  Libraries libraries;
  std::shared_ptr<const neuroshard::runtime::WorldPlan> plan;
  /// Null if other devices are in other processes.
  std::shared_ptr<neuroshard::runtime::InProcessGroup> group;
  std::vector<std::unique_ptr<nsrt_device>> devices;

private:
  void setPlan(neuroshard::Manifest manifest);
  void addDevice(int32_t rank, int threads,
                 std::unique_ptr<neuroshard::runtime::Communicator>,
                 neuroshard::runtime::BackendFactory *backends,
                 const std::string &tierDirectory);
  /// Lets the device exchange messages in its memory.
  void connect(nsrt_device &device,
               neuroshard::runtime::BackendFactory &backends);
  /// Begins a step on all devices, or on none if it throws.
  void beginSteps();

  /// Held by invokeAll as long as it uses the devices.
  std::mutex invoking;
};

namespace neuroshard::runtime {

/// Runs one function on a device that has begun a step, ends the step and
/// returns why it failed, "" if it did not.
std::string runStep(Device &device, HostFunction function, void **args);

std::unique_ptr<nsrt_world> openWorld(const std::string &directory,
                                      int threadsPerDevice,
                                      BackendFactory *backends,
                                      const std::string &tierDirectory = "");
std::unique_ptr<nsrt_world> joinWorld(const std::string &directory, int threads,
                                      std::unique_ptr<Communicator>,
                                      BackendFactory *backends,
                                      const std::string &tierDirectory = "");

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_WORLD_WORLD_H
