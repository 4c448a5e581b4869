//===- RooflineCompute.cpp - Closed-form compute cost ---------------------===//
///
/// \file
/// The formulas are in docs/planner.md. All of a device's cost is a function of
/// the sum of seven byte counts over its shards, so the model has an
/// incremental form.
//===----------------------------------------------------------------------===//

#include "neuroshard/CostModel/Roofline.h"

#include "RooflineCommunication.h"
#include "TransferTime.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace neuroshard;

namespace {

/// Memory is read in sectors of this many bytes.
constexpr double kSectorBytes = 32;
/// Passes of a radix sort of (id, position) pairs, each reading and writing.
constexpr double kSortPasses = 4;
constexpr double kSortPairBytes = 12;
constexpr double kGradientBytes = 4;
constexpr double kNormBytes = 4;

/// Byte counts of a shard; they add up over the shards of a device.
struct Bytes {
  /// Forward: ids, offsets, results; distinct rows; rows read again.
  double forwardStream = 0;
  double uniqueRows = 0;
  double repeatedRows = 0;
  /// Backward: gradients, rows and state in and out, sorting; gradients read
  /// again, once per id.
  double backwardStream = 0;
  double backwardRepeated = 0;
  /// Over the link to the host: rows; rows and state, both ways together.
  double forwardHost = 0;
  double backwardHost = 0;
};

constexpr int kByteCounts = 7;

double wholeSectors(double bytes) {
  return std::ceil(bytes / kSectorBytes) * kSectorBytes;
}

/// Element-wise state read and written with each updated row.
double elementStateBytes(const ShardWork &shard) {
  return propertiesOf(shard.optimizer).states.perElement *
         wholeSectors(static_cast<double>(shard.width) * 4);
}

/// All state read and written with each updated row.
double stateBytesPerRow(const ShardWork &shard) {
  return elementStateBytes(shard) +
         propertiesOf(shard.optimizer).states.perRow * 4;
}

Bytes countBytes(const ShardWork &shard) {
  double width = static_cast<double>(shard.width);
  double storedBytes = wholeSectors(
      static_cast<double>(rowBytes(shard.width, shard.elementType)));
  double idBytes =
      static_cast<double>(shard.idBytes) + (shard.weighted ? 4 : 0);
  double resultBytes =
      shard.rowSplit ? 4 : static_cast<double>(elementBytes(shard.outputType));
  double unique = std::min(shard.uniqueRows, shard.lookups);

  Bytes bytes;
  bytes.forwardStream = shard.lookups * idBytes +
                        shard.outputRows * static_cast<double>(shard.idBytes) +
                        shard.outputRows * width * resultBytes;
  bytes.uniqueRows = unique * storedBytes;
  bytes.repeatedRows = (shard.lookups - unique) * storedBytes;
  double updates = shard.catchesUp ? 2 : 1; // also before the lookup
  double updatedRows = std::min(shard.updateUniqueRows, shard.updateLookups);
  bytes.backwardStream =
      shard.updateGradientRows * width * kGradientBytes +
      updates * (2 * updatedRows * (storedBytes + stateBytesPerRow(shard)) +
                 shard.updateLookups * kSortPairBytes * 2 * kSortPasses);
  // Reduced gradients wait for the norms of the other columns.
  if (shard.exactNorms)
    bytes.backwardStream +=
        2 * updatedRows *
        (width * kGradientBytes +
         static_cast<double>(normsPerRow(shard.optimizer)) * kNormBytes);
  bytes.backwardRepeated = shard.updateLookups * width * kGradientBytes;
  bytes.forwardHost = shard.hostRows * storedBytes;
  // A row-wise state stays on the device. docs/memory.md says what is where.
  bytes.backwardHost =
      2 * shard.hostUpdateRows * (storedBytes + elementStateBytes(shard));
  return bytes;
}

/// Compute of a device that holds shards of these byte counts.
ComputeMs rooflineMs(const Bytes &bytes, int shards,
                     const DeviceClass &deviceClass) {
  if (shards == 0)
    return {};
  if (const DeviceClass &kernels = deviceClass.kernels();
      &kernels != &deviceClass)
    return scaled(rooflineMs(bytes, shards, kernels), deviceClass.kernelScale);
  double hitShare =
      bytes.uniqueRows > 0
          ? std::min(1.0, static_cast<double>(deviceClass.cacheBytes) /
                              bytes.uniqueRows)
          : 1.0;
  double forwardMemory = bytes.forwardStream + bytes.uniqueRows +
                         (1 - hitShare) * bytes.repeatedRows;
  double forwardCache =
      bytes.forwardStream + bytes.uniqueRows + bytes.repeatedRows;
  double backwardCache = bytes.backwardStream + bytes.backwardRepeated;
  double memoryRate = deviceClass.memoryBandwidthGBps;
  double cacheRate = deviceClass.cacheBandwidthGBps;
  double fixedMs = shards * deviceClass.perShardUs * 1e-3;
  ComputeMs time;
  time.forwardMs = deviceClass.forwardLaunchUs * 1e-3 + fixedMs +
                   std::max(bytesToMs(forwardMemory, memoryRate),
                            bytesToMs(forwardCache, cacheRate)) /
                       deviceClass.forwardEfficiency +
                   bytesToMs(bytes.forwardHost, deviceClass.hostBandwidthGBps);
  time.backwardMs =
      deviceClass.backwardLaunchUs * 1e-3 + fixedMs +
      std::max(bytesToMs(bytes.backwardStream, memoryRate),
               bytesToMs(backwardCache, cacheRate)) /
          deviceClass.backwardEfficiency +
      bytesToMs(bytes.backwardHost, deviceClass.hostBandwidthGBps);
  return time;
}

class RooflineEmbedding final : public SumEmbedding {
public:
  int size() const override { return kByteCounts; }
  void embed(const ShardWork &shard, const DeviceClass &,
             std::span<double> out) const override {
    Bytes bytes = countBytes(shard);
    out[0] = bytes.forwardStream;
    out[1] = bytes.uniqueRows;
    out[2] = bytes.repeatedRows;
    out[3] = bytes.backwardStream;
    out[4] = bytes.backwardRepeated;
    out[5] = bytes.forwardHost;
    out[6] = bytes.backwardHost;
  }
  ComputeMs head(std::span<const double> sum, int shardCount,
                 const DeviceClass &deviceClass) const override {
    return rooflineMs({sum[0], sum[1], sum[2], sum[3], sum[4], sum[5], sum[6]},
                      shardCount, deviceClass);
  }
};

class RooflineModel final : public CostModel {
public:
  std::string name() const override { return "roofline"; }
  const SumEmbedding *sumEmbedding() const override { return &embedding; }
  bool monotone() const override { return true; }

  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    std::array<double, kByteCounts> sum, one;
    for (size_t i = 0; i < sets.size(); ++i) {
      sum.fill(0);
      for (const ShardWork *shard : sets[i].shards) {
        embedding.embed(*shard, *sets[i].deviceClass, one);
        for (size_t k = 0; k < sum.size(); ++k)
          sum[k] += one[k];
      }
      out[i] = embedding.head(sum, static_cast<int>(sets[i].shards.size()),
                              *sets[i].deviceClass);
    }
  }

  /// A device that starts early waits for the last.
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction) const override {
    std::vector<double> times = linkTimesMs(traffic);
    if (startSkewsMs.empty())
      return times;
    double last = *std::max_element(startSkewsMs.begin(), startSkewsMs.end());
    for (size_t i = 0; i < times.size(); ++i)
      times[i] += last - startSkewsMs[i];
    return times;
  }

  std::vector<double> arrivalsMs(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 double evenMs,
                                 Direction direction) const override {
    return linkArrivalsMs(traffic, startsMs, evenMs, direction);
  }

  CostBound lowerBound(std::span<const BoundTable> tables,
                       const Topology &topology) const override;

private:
  RooflineEmbedding embedding;
};

/// Rates that no device of the topology exceeds.
struct BestRates {
  double forwardGBps = 0;
  double backwardGBps = 0;
  double forwardCacheGBps = 0;
  double backwardCacheGBps = 0;
  /// Of all devices together.
  double cacheBytes = 0;
  double forwardFixedMs = 1e300;
  double backwardFixedMs = 1e300;
};

BestRates bestRates(const Topology &topology) {
  BestRates best;
  for (const Device &device : topology.devices) {
    const DeviceClass *own = findDeviceClass(topology, device.deviceClass);
    const DeviceClass *c = &own->kernels();
    auto [forward, backward] = c == own ? KernelScale{1, 1} : own->kernelScale;
    double forwardShare = c->forwardEfficiency / forward,
           backwardShare = c->backwardEfficiency / backward;
    best.forwardGBps =
        std::max(best.forwardGBps, c->memoryBandwidthGBps * forwardShare);
    best.backwardGBps =
        std::max(best.backwardGBps, c->memoryBandwidthGBps * backwardShare);
    best.forwardCacheGBps =
        std::max(best.forwardCacheGBps, c->cacheBandwidthGBps * forwardShare);
    best.backwardCacheGBps =
        std::max(best.backwardCacheGBps, c->cacheBandwidthGBps * backwardShare);
    best.cacheBytes += static_cast<double>(c->cacheBytes);
    best.forwardFixedMs =
        std::min(best.forwardFixedMs,
                 (c->forwardLaunchUs + c->perShardUs) * 1e-3 * forward);
    best.backwardFixedMs =
        std::min(best.backwardFixedMs,
                 (c->backwardLaunchUs + c->perShardUs) * 1e-3 * backward);
  }
  return best;
}

/// Bytes that the caches can save at most. A device's cache serves the share
/// min(1, cache / distinct rows) of its repeated rows, for which that share of
/// its distinct rows takes no more than the cache: together a way of filling
/// one cache of all devices' size with shares of tables, of which the best
/// takes those with the most repeated bytes per distinct byte first.
double mostCachedBytes(const std::vector<Bytes> &tables, double cacheBytes) {
  std::vector<const Bytes *> order;
  for (const Bytes &bytes : tables)
    if (bytes.repeatedRows > 0)
      order.push_back(&bytes);
  std::sort(order.begin(), order.end(), [](const Bytes *a, const Bytes *b) {
    return a->repeatedRows * b->uniqueRows > b->repeatedRows * a->uniqueRows;
  });
  double saved = 0;
  for (const Bytes *bytes : order) {
    double share =
        bytes->uniqueRows > cacheBytes ? cacheBytes / bytes->uniqueRows : 1;
    saved += share * bytes->repeatedRows;
    cacheBytes -= share * bytes->uniqueRows;
  }
  return saved;
}

/// Lower bound of a device's bytes over all cuts: those of whole tables, spread
/// evenly. Cutting columns rounds rows up to more sectors and repeats the ids,
/// cutting rows repeats the results, replicas repeat the update.
CostBound RooflineModel::lowerBound(std::span<const BoundTable> tables,
                                    const Topology &topology) const {
  CostBound bound;
  std::vector<Bytes> wholes;
  double forward = 0, backward = 0, backwardRepeated = 0;
  double inputBytes = 0, forwardBytes = 0, backwardBytes = 0, receivedBytes = 0;
  for (const BoundTable &table : tables) {
    Bytes bytes = countBytes(table.whole);
    wholes.push_back(bytes);
    forward += bytes.forwardStream + bytes.uniqueRows + bytes.repeatedRows;
    backward += bytes.backwardStream;
    backwardRepeated += bytes.backwardRepeated;
    backwardBytes += table.leastBackwardBytes();
    receivedBytes += table.leastReceivedBytes();
    if (table.mayReplicate)
      continue;
    inputBytes += table.whole.inputBytes;
    forwardBytes += table.whole.forwardBytes;
  }
  double devices = topology.deviceCount();
  BestRates best = bestRates(topology);
  double memory = forward - mostCachedBytes(wholes, best.cacheBytes);
  bound.maxForwardMs =
      best.forwardFixedMs +
      std::max(bytesToMs(memory / devices, best.forwardGBps),
               bytesToMs(forward / devices, best.forwardCacheGBps));
  bound.maxBackwardMs =
      best.backwardFixedMs +
      std::max(bytesToMs(backward / devices, best.backwardGBps),
               bytesToMs((backward + backwardRepeated) / devices,
                         best.backwardCacheGBps));
  // The mean over the devices of forward + backward is no larger than its
  // largest value; the fixed times enter where there is anything at all.
  bound.maxTotalMs = bound.maxForwardMs + bound.maxBackwardMs;
  bound.maxInputMs = linkBoundMs(topology, inputBytes);
  bound.maxForwardCommunicationMs = linkBoundMs(topology, forwardBytes);
  bound.maxBackwardCommunicationMs = linkBoundMs(topology, backwardBytes);
  // As above: means over the devices.
  bound.maxForwardSendMs =
      bound.maxForwardMs + ownLinkBoundMs(topology, forwardBytes);
  bound.maxReceiveBackwardMs =
      bound.maxBackwardMs + ownLinkBoundMs(topology, receivedBytes);
  return bound;
}

} // namespace

std::unique_ptr<CostModel> neuroshard::makeRooflineModel() {
  return std::make_unique<RooflineModel>();
}
