//===- Device.h - One device and the handles of its steps ------*- C++ -*-===//
//
// The objects behind nsrt_device, nsrt_routed and nsrt_partials. A device owns
// its shards, threads, buffers and communicator, and shares none of them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_DEVICE_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_DEVICE_H

#include "CallOrder.h"
#include "FrozenTables.h"
#include "Host/BufferPool.h"
#include "Phases.h"
#include "Shards/Shard.h"
#include "StepHistory.h"
#include "TableRates.h"
#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/MessageLayout.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/Communicator.h"
#include "neuroshard/Runtime/DriverABI.h"
#include "neuroshard/Runtime/HostProgramABI.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neuroshard::runtime {

class ProgramLibrary;
struct PreparedUpdate;

/// What is the same for all devices of a world.
struct WorldPlan {
  explicit WorldPlan(Manifest manifest);

  Manifest manifest;
  DeviceGroups groups;
  /// Per table: whether its update exchanges norms.
  std::vector<bool> needsNormExchange;
  /// Per table: whether some shard is copied (ExchangePlan::isCopied).
  std::vector<bool> hasCopies;
  /// ExchangePlan::trainedCopies(), which sum gradients in each step, and
  /// driftingCopies(), which do not.
  std::vector<int32_t> summedCopies, driftingCopies;
  std::vector<float> gradientFactors; ///< by table.
  size_t headerNumbers;               ///< of each header of ids (IdHeader.h).
  bool hasCaches;                     ///< whether some shard has a row cache.
};

/// A function of a program.
struct HostFunction {
  nsrt_host_function call;
  bool touchesTensors = false; ///< FunctionSpec::touchesTensors.
};

/// What the local batch has for one lookup.
struct LookupState {
  int64_t firstId = 0; ///< of its feature in the input.
  int64_t resultRows = 0;
  Buffer bagCounts; ///< f32 [batch]; for mean only.
};

/// What the local batch has for one bucket.
struct BucketState {
  int64_t numIds = 0;
  /// i64 place in the input of each id of the bucket; null if the bucket has
  /// all ids of its feature, in order.
  Buffer places;
};

/// The ids of one StreamSet, from one or all ranks, where kernels read them.
struct ReceivedSet {
  std::vector<std::vector<PeerIds>> streams; ///< by stream, then rank.
  Buffer offsets;                            ///< of all bags.
  /// By entry, then rank: places of rows in the cache of the entry's shard, in
  /// the type of ids; null without a cache. Empty: no shard has one.
  std::vector<std::vector<const std::byte *>> places;
  Buffer placeMemory;

  /// Of the ids of one rank for an entry; null without a cache.
  const std::byte *placesOf(size_t entry, size_t rank) const {
    return places.empty() ? nullptr : places[entry][rank];
  }
  /// The ids of one rank as the kernels of an entry read them.
  PeerIds idsOf(const std::vector<EntryLayout> &entries, size_t entry,
                size_t rank) const {
    PeerIds ids = streams[static_cast<size_t>(entries[entry].stream)][rank];
    if (const std::byte *ofRows = placesOf(entry, rank))
      ids.ids = ofRows;
    return ids;
  }
};

/// Rows of a replicated table's lookup on the local batch.
struct LocalRows {
  std::byte *first = nullptr;
  int64_t stride = 0; ///< values.
  WireFormat format = WireFormat::F32;
};

/// A gradient in the caller's memory.
struct InPlaceGradient {
  const float *first = nullptr;
  int64_t stride = 0;
};

/// Gradients that one rank has sent, as kernels read them.
struct ReceivedBlock {
  Block block;
  const float *direct = nullptr;
  const float *relayed = nullptr; ///< the block's last values.
  /// By entry, of gradients that are read where the caller has them; else null.
  std::vector<const float *> inPlace;

  /// Of the first item of an entry.
  const float *at(size_t entry) const {
    if (!inPlace.empty() && inPlace[entry])
      return inPlace[entry];
    int64_t begin = block.begin[entry];
    return begin < block.directSize ? direct + begin
                                    : relayed + (begin - block.directSize);
  }
};

/// Relayed results, or gradients, of some samples of every rank
/// (RelayPieces.h).
struct RelayedPiece {
  std::vector<int64_t> begins, batches; ///< the samples, per rank.
  /// Gradients: the first value of the message in what is sent, and of what
  /// the relay of each group gets.
  int64_t sendBegin = 0;
  std::vector<int64_t> relayBegins;
  std::unique_ptr<CommunicatorRequest> request, relayRequest;
  /// Received: the sums of each group, or the gradients of each rank.
  std::vector<const std::byte *> rows;
};

} // namespace neuroshard::runtime

struct nsrt_routed {
  int32_t exchange = 0;
  int64_t input = 0; ///< its number; the same on all ranks.
  /// Why this step failed, "" if it has not.
  std::string error;
  /// True if other ranks may not know of the failure.
  bool failedAlone = false;

  // The local batch.
  int64_t batch = 0;
  int64_t numIds = 0;
  std::vector<neuroshard::runtime::LookupState> lookups;
  std::vector<neuroshard::runtime::BucketState> buckets;
  /// Copies of the input for the device, if it lies in memory of the host.
  std::vector<neuroshard::runtime::Buffer> inputCopies;

  /// Those that the device had when it routed the ids.
  neuroshard::runtime::FrozenTablesPtr frozen;

  // What all ranks have told each other, per rank: samples, and ids by stream
  // for this device, of replicated tables, and for its group (those of ranks
  // that it is no relay for are 0).
  std::vector<int64_t> batchOfPeer;
  std::vector<std::vector<int64_t>> ownedIdsOfPeer;
  std::vector<std::vector<int64_t>> localIdsOfPeer;
  std::vector<std::vector<int64_t>> groupIdsOfPeer;

  // Messages of ids, kept while kernels read them.
  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> request;
  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> relayRequest;
  neuroshard::runtime::Buffer ownPayload;
  neuroshard::runtime::Buffer localPayload; ///< of replicated tables.
  int64_t localPayloadBytes = 0;

  // Ids at their owner, received when they are first needed.
  bool received = false;
  neuroshard::runtime::ReceivedSet owned;
  neuroshard::runtime::ReceivedSet local; ///< replicated tables, own batch.
  bool isFetched = false; ///< rows of shards with a cache are brought.
  /// Those rows; null if there are none.
  std::unique_ptr<neuroshard::runtime::RowsInUse> rows;
};

struct nsrt_partials {
  /// Direct results (see Lookup.cpp) are not computed yet.
  bool deferred = false;

  /// What this device sends, in blocks, one per rank: results of its shards in
  /// f32, or gradients in the type in which they travel.
  neuroshard::runtime::Buffer send;
  std::vector<neuroshard::Block> sendBlocks;
  std::vector<int64_t> sendBegins; ///< first value of each block in `send`.
  /// By entry of replicated tables: results in f32; gradients in f32 if they
  /// are added up by row, else in the type in which they travel.
  std::vector<neuroshard::runtime::LocalRows> localRows;
  /// Results of replicated tables, or gradients that are added up by row.
  neuroshard::runtime::Buffer local;
  /// Ids and gradients that all ranks gather.
  neuroshard::runtime::Buffer gatherMessage;
  neuroshard::ReplicaUpdate replicas;
  /// Sums of this rank's gradients by row, f32; then those of all ranks.
  neuroshard::runtime::Buffer rowSums;

  // Messages, kept while they are read.
  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> request;
  std::vector<neuroshard::runtime::RelayedPiece> pieces;
  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> gather;
  std::unique_ptr<neuroshard::runtime::CommunicatorRequest> sumsRequest;
  size_t numSumExchanges = 0; ///< exchanges of row sums that have ended.
  bool received = false;

  // What was received directly, in the type in which it travels: results per
  // owner, gradients per rank.
  std::vector<neuroshard::Block> receivedBlocks;
  std::vector<const std::byte *> receivedRows;

  // Received gradients, per rank: of owned and of gathered replicated tables,
  // these with the ids of all ranks.
  std::vector<neuroshard::runtime::ReceivedBlock> gradients;
  std::vector<neuroshard::runtime::ReceivedBlock> gatheredGradients;
  neuroshard::runtime::ReceivedSet gathered;
  /// Gradients that did not travel as f32, or in pieces.
  neuroshard::runtime::Buffer decoded;

  /// By lookup, the caller's gradients that kernels read in place, f32; null
  /// where gradients are in `send`. Empty: all are.
  std::vector<neuroshard::runtime::InPlaceGradient> inPlace;
  /// What keeps copies of the caller's tensors alive.
  std::vector<neuroshard::runtime::Buffer> copies;
};

/// Received gradients of steps that have one update together with a later step.
struct KeptGradients {
  std::vector<std::unique_ptr<nsrt_routed>> routed;
  std::vector<std::unique_ptr<nsrt_partials>> gradients; ///< of each of these.
  /// By exchange, that of the first of these steps to pack its gradients.
  std::map<int32_t, neuroshard::ReplicaUpdate> forms;
};

struct nsrt_device {
  nsrt_device(std::shared_ptr<const neuroshard::runtime::WorldPlan> plan,
              int32_t rank, const neuroshard::runtime::ProgramLibrary &library,
              std::unique_ptr<neuroshard::runtime::Communicator> communicator,
              int threads, neuroshard::runtime::BackendFactory *backends,
              const std::string &tierDirectory);
  ~nsrt_device();

  int32_t rank() const { return ownRank; }
  int32_t numDevices() const { return plan->manifest.numDevices; }
  const neuroshard::Manifest &manifest() const { return plan->manifest; }
  int32_t packedIdBytes(int64_t exchange) const {
    return manifest().packedIdBytes(
        manifest().exchanges[static_cast<size_t>(exchange)]);
  }
  const neuroshard::ExchangeLayout &layout(int64_t exchange) const {
    return plan->manifest.layouts[static_cast<size_t>(exchange)];
  }

  /// By which the gradients of a step travel.
  const neuroshard::ExchangeLayout &
  gradientLayout(const nsrt_routed &routed) const {
    return routed.frozen ? routed.frozen->layout(routed.exchange)
                         : layout(routed.exchange);
  }

  /// In which results and gradients travel: f32 if nothing does.
  neuroshard::WireType wireType() const {
    return numDevices() == 1 ? neuroshard::WireType() : manifest().wireType;
  }

  bool failed() const { return !error.empty(); }
  /// Throws a RuntimeError if the program has no such function.
  neuroshard::runtime::HostFunction find(const std::string &name) const;
  /// Throws a RuntimeError if the device is in a step.
  void requireIdle() const;
  void beginStep();
  void endStep() noexcept;
  /// Records why the step failed; the first reason stays.
  void recordFailure(const std::string &cause) noexcept;
  /// Drops what belongs to handles that are released: deferred lookups, and
  /// what was to be relayed.
  void forget(const nsrt_routed *routed, const nsrt_partials *partials);

  std::vector<neuroshard::runtime::SlotMemory> slotMemory() const;

  // Copies between memory of the host and of the device.
  void read(void *to, const void *from, int64_t bytes) const;
  void write(void *to, const void *from, int64_t bytes) const;

  std::shared_ptr<const neuroshard::runtime::WorldPlan> plan;
  int32_t ownRank;
  const neuroshard::runtime::ProgramLibrary &library;
  const nsrt_program &program;
  std::unique_ptr<neuroshard::runtime::Communicator> communicator;
  neuroshard::runtime::ThreadPool threads;
  /// Null: that of the host.
  std::shared_ptr<neuroshard::runtime::DeviceMemory> memory;
  std::shared_ptr<neuroshard::runtime::BufferPool> hostBuffers;
  /// In memory of the device.
  std::shared_ptr<neuroshard::runtime::BufferPool> buffers;
  /// Null if none of its shards has a row cache.
  std::unique_ptr<neuroshard::runtime::IoQueue> io;
  std::vector<neuroshard::runtime::Shard> slots;
  std::unique_ptr<neuroshard::runtime::Backend> backend;
  /// Factor of all gradients, applied before they travel.
  float gradientScale = 1;
  neuroshard::runtime::TableRates rates;
  /// By table, of those whose rows catch up.
  std::map<int32_t, neuroshard::runtime::StepHistory> histories;
  /// Of the next ids that are routed.
  neuroshard::runtime::FrozenTablesPtr frozen;
  /// Whether nsrt_update keeps gradients instead.
  bool keepsGradients = false;
  KeptGradients kept;
  /// Of what was kept, until it is run; or null.
  std::shared_ptr<neuroshard::runtime::PreparedUpdate> prepared;
  /// What this device still has to hand on as a relay, in the order in which
  /// all ranks have sent it: ids, and results (RelayDuties.h).
  std::vector<nsrt_routed *> idsToRelay;
  /// Where shards have caches: the steps whose ids it has not received yet.
  std::vector<nsrt_routed *> idsToFetch;
  std::vector<std::pair<const nsrt_routed *, nsrt_partials *>> resultsToRelay;
  /// Lookups whose results are not computed yet.
  std::vector<std::pair<nsrt_routed *, nsrt_partials *>> deferred;
  neuroshard::runtime::PhaseFigures figures;
  neuroshard::runtime::CallOrder order;
  /// Whether the function that runs has its tensors in memory of the host while
  /// the device has its own.
  bool tensorsOnHost = false;
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
