//===- Device.h - One device and the handles of its steps ------*- C++ -*-===//
//
// The objects behind nsrt_device, nsrt_routed and nsrt_partials. A device owns
// its shards, threads, buffers and communicator, and shares none of them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_DEVICE_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_DEVICE_H

#include "Memory/BufferPool.h"
#include "Phases.h"
#include "Shard.h"
#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/MessageLayout.h"
#include "neuroshard/Runtime/Communicator.h"
#include "neuroshard/Runtime/HostProgramABI.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neuroshard::runtime {

class ProgramLibrary;

/// What is the same for all devices of a world.
struct WorldPlan {
  explicit WorldPlan(Manifest manifest);

  Manifest manifest;
  DeviceGroups groups;
  /// Per table: whether its update exchanges norms.
  std::vector<bool> needsNormExchange;
};

/// What the local batch has for one lookup.
struct LookupState {
  int64_t firstId = 0; ///< of its feature in the input.
  int64_t numIds = 0;
  int64_t resultRows = 0;
  Buffer bagCounts; ///< f32 [batch]; for mean only.
};

/// What the local batch has for one bucket.
struct BucketState {
  int64_t numIds = 0;
  /// i64 place in the input of each id of the bucket; null if the bucket has
  /// all ids of its feature, in order.
  Buffer positions;
};

/// One stream as its owner received it, over the bags of all peers.
struct ReceivedStream {
  const std::byte *ids = nullptr;
  const float *weights = nullptr;     ///< null unless weighted.
  const int64_t *offsets = nullptr;   ///< [bags + 1]; null if unpooled.
  std::vector<int64_t> firstIdOfPeer; ///< [peers + 1].

  int64_t numIds() const { return firstIdOfPeer.back(); }
};

/// The received streams of one StreamSet, from one or all peers.
struct ReceivedSet {
  std::vector<int64_t> firstBagOfPeer; ///< [peers + 1].
  std::vector<ReceivedStream> streams;
  std::vector<Buffer> storage;

  int64_t numPeers() const {
    return static_cast<int64_t>(firstBagOfPeer.size()) - 1;
  }
  int64_t bagsOf(int64_t peer) const {
    return firstBagOfPeer[peer + 1] - firstBagOfPeer[peer];
  }
};

} // namespace neuroshard::runtime

struct nsrt_routed {
  int32_t exchange = 0;
  /// Why this step failed, "" if it has not.
  std::string error;
  /// True if other ranks may not know of the failure.
  bool failedAlone = false;

  // The local batch.
  int64_t batch = 0;
  int64_t numIds = 0;
  std::vector<neuroshard::runtime::LookupState> lookups;
  std::vector<neuroshard::runtime::BucketState> buckets;

  // Ids that travel.
  std::vector<int64_t> batchOfPeer;
  /// Of replicated tables, per peer: bytes of ids, floats of gradients.
  std::vector<std::pair<int64_t, int64_t>> replicatedOfPeer;
  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> request;
  neuroshard::runtime::Buffer ownPayload; ///< kept while streams point to it.
  neuroshard::runtime::Buffer localPayload;
  int64_t localPayloadBytes = 0;

  // Ids at their owner, received when they are first needed.
  bool received = false;
  neuroshard::runtime::ReceivedSet owned;
  neuroshard::runtime::ReceivedSet local; ///< replicated tables, own batch.
};

struct nsrt_partials {
  /// Direct results (see Lookup.cpp) are not computed yet.
  bool deferred = false;

  // The blocks to send: consecutive, one per peer.
  neuroshard::runtime::Buffer send;
  std::vector<neuroshard::Block> sendBlocks;
  /// Rows of replicated tables: results, or gradients after a header.
  neuroshard::runtime::Buffer local;
  neuroshard::Block localBlock;
  float *localRows = nullptr;

  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> request;
  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> gather;

  // Received results, per owner; received when they are first needed.
  bool received = false;
  std::vector<neuroshard::Block> receivedBlocks;
  std::vector<const float *> receivedRows;
  neuroshard::runtime::Buffer receivedStorage; ///< null if read in place.
  /// Received sums of relayed lookups, per group.
  std::vector<const float *> relayedRows;
  neuroshard::runtime::Buffer relayedStorage;
  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> relayRequest;

  // Received gradients, per peer; blocks begin at an offset from `gradients`,
  // which has `numFloats` floats.
  neuroshard::runtime::Buffer merged;
  const float *gradients = nullptr;
  int64_t numFloats = 0;
  /// Replicated tables, with the ids of all peers.
  neuroshard::runtime::ReceivedSet gathered;
  std::vector<neuroshard::Block> gatheredBlocks;
};

struct nsrt_device {
  nsrt_device(std::shared_ptr<const neuroshard::runtime::WorldPlan> plan,
              int32_t rank, const neuroshard::runtime::ProgramLibrary &library,
              std::unique_ptr<neuroshard::runtime::Communicator> communicator,
              int threads);

  int32_t rank() const { return ownRank; }
  int32_t numDevices() const { return plan->manifest.numDevices; }
  const neuroshard::Manifest &manifest() const { return plan->manifest; }
  const neuroshard::ExchangeLayout &layout(int64_t exchange) const {
    return plan->manifest.layouts[static_cast<size_t>(exchange)];
  }

  bool failed() const { return !error.empty(); }
  /// Throws a RuntimeError if the device is in a step.
  void requireIdle() const;
  void beginStep();
  void endStep() noexcept;
  /// Records why the step failed; the first reason stays.
  void recordFailure(const std::string &cause) noexcept;
  /// Drops deferred lookups whose handles are released.
  void forget(const nsrt_routed *routed, const nsrt_partials *partials);

  std::shared_ptr<const neuroshard::runtime::WorldPlan> plan;
  int32_t ownRank;
  const neuroshard::runtime::ProgramLibrary &library;
  const nsrt_program &program;
  std::unique_ptr<neuroshard::runtime::Communicator> communicator;
  neuroshard::runtime::ThreadPool threads;
  std::shared_ptr<neuroshard::runtime::BufferPool> buffers;
  std::vector<neuroshard::runtime::Shard> slots;
  /// Factor of all gradients, applied before they travel.
  float gradientScale = 1;
  /// Lookups whose results are not computed yet.
  std::vector<std::pair<nsrt_routed *, nsrt_partials *>> deferred;
  neuroshard::runtime::PhaseFigures figures;
  std::string error;
  /// Why the device refuses the next ids, "" if it does not.
  std::string refusal;
  std::atomic<bool> inStep{false};
};

namespace neuroshard::runtime {
using Device = nsrt_device;
using Routed = nsrt_routed;
using Partials = nsrt_partials;
} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_DEVICE_H
