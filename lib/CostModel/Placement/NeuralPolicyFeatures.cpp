//===- NeuralPolicyFeatures.cpp - Features of a device --------------------===//
///
/// \file
/// Names and values are written down side by side, in one order. Times are
/// relative to the mean device's share of all pieces' time alone, bytes to the
/// mean device's bytes.
//===----------------------------------------------------------------------===//

#include "neuroshard/CostModel/NeuralPolicy.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace neuroshard;

namespace {

constexpr std::array<std::string_view, kPlacementFeatureCount> kNames = {
    "compute",
    "forward_after",
    "backward_after",
    "compute_after_above_least",
    "compute_after_above_most",
    "forward_after_above_most",
    "backward_after_above_most",
    "communication",
    "communication_above_most",
    "bytes_after",
    "bytes_after_above_least",
    "bytes_after_above_most",
    "memory_after",
    "memory_after_above_least",
    "memory_free",
    "memory_left_for_largest",
    "memory_of_largest_left",
    "memory_to_come",
    "piece_compute",
    "piece_bytes",
    "compute_left",
    "log_pieces_left_per_device",
    "log_pieces_per_device",
    "log_devices",
    "mean_compute",
    "objective_step",
};
static_assert(!kNames.back().empty(), "a name for each feature");

/// Least and most over the devices. "After" counts devices that admit the
/// piece only.
struct Extremes {
  explicit Extremes(std::span<const PlacementDevice> devices) {
    double count = static_cast<double>(devices.size());
    for (const PlacementDevice &device : devices) {
      mostMs = std::max(mostMs, device.compute.total());
      mostForwardMs = std::max(mostForwardMs, device.compute.forwardMs);
      mostBackwardMs = std::max(mostBackwardMs, device.compute.backwardMs);
      mostCommunicationMs =
          std::max(mostCommunicationMs, device.communicationMs);
      mostBytes = std::max(mostBytes, device.exchangeBytes);
      meanMs += device.compute.total() / count;
      memoryFree += (1 - device.memoryShare) / count;
      if (!device.admits)
        continue;
      leastMsAfter = std::min(leastMsAfter, device.computeAfter.total());
      leastBytes = std::min(leastBytes, device.exchangeBytes);
      leastMemoryAfter = std::min(leastMemoryAfter, device.memoryShareAfter);
    }
  }

  double mostMs = 0, mostForwardMs = 0, mostBackwardMs = 0;
  double mostCommunicationMs = 0, mostBytes = 0, meanMs = 0, memoryFree = 0;
  double leastMsAfter = INFINITY, leastBytes = INFINITY;
  double leastMemoryAfter = INFINITY;
};

/// Features are finite whatever the task, also where no device admits.
float toFinite(double value) {
  return std::isfinite(value) ? static_cast<float>(value) : 0.0f;
}

double positive(double value) { return value > 0 ? value : 1; }

} // namespace

std::span<const std::string_view> neuroshard::placementFeatureNames() {
  return kNames;
}

PlacementScale::PlacementScale(const PlacementTask &task) : task(task) {
  double devices = std::max(1, task.deviceCount);
  for (const PlacementPiece &piece : task.pieces) {
    meanMs += piece.aloneMs / devices;
    meanBytes += piece.exchangeBytes / devices;
  }
  meanMs = positive(meanMs);
  meanBytes = positive(meanBytes);
  for (size_t i = 0; i < task.pieces.size(); ++i)
    byMemory.push_back(i);
  std::stable_sort(byMemory.begin(), byMemory.end(), [&](size_t a, size_t b) {
    return task.pieces[a].memoryShare > task.pieces[b].memoryShare;
  });
  reset();
}

void PlacementScale::reset() {
  piecesLeft = task.pieces.size();
  isPlaced.assign(piecesLeft, false);
  largest = 0;
  msLeft = memoryLeft = 0;
  for (const PlacementPiece &piece : task.pieces) {
    msLeft += piece.aloneMs;
    memoryLeft += piece.memoryShare;
  }
}

void PlacementScale::placed(size_t piece) {
  // A replicated piece is placed on every device.
  if (isPlaced[piece])
    return;
  isPlaced[piece] = true;
  msLeft -= task.pieces[piece].aloneMs;
  memoryLeft -= task.pieces[piece].memoryShare;
  --piecesLeft;
  while (largest < byMemory.size() && isPlaced[byMemory[largest]])
    ++largest;
}

void PlacementScale::featurize(size_t piece,
                               std::span<const PlacementDevice> devices,
                               std::span<float> out) const {
  const PlacementPiece &placing = task.pieces[piece];
  const Extremes extremes(devices);
  double count = std::max(1, task.deviceCount);
  // The largest piece that comes after this one.
  size_t later = largest;
  while (later < byMemory.size() &&
         (byMemory[later] == piece || isPlaced[byMemory[later]]))
    ++later;
  double largestLeft =
      later < byMemory.size() ? task.pieces[byMemory[later]].memoryShare : 0;
  size_t next = 0;
  auto put = [&](double value) { out[next++] = toFinite(value); };
  for (const PlacementDevice &device : devices) {
    const ComputeMs &after = device.computeAfter;
    double bytesAfter = device.exchangeBytes + placing.exchangeBytes;
    put(device.compute.total() / meanMs);
    put(after.forwardMs / meanMs);
    put(after.backwardMs / meanMs);
    put((after.total() - extremes.leastMsAfter) / meanMs);
    put((after.total() - extremes.mostMs) / meanMs);
    put((after.forwardMs - extremes.mostForwardMs) / meanMs);
    put((after.backwardMs - extremes.mostBackwardMs) / meanMs);
    put(device.communicationMs / meanMs);
    put((device.communicationMs - extremes.mostCommunicationMs) / meanMs);
    put(bytesAfter / meanBytes);
    put((device.exchangeBytes - extremes.leastBytes) / meanBytes);
    put((bytesAfter - extremes.mostBytes) / meanBytes);
    put(device.memoryShareAfter);
    put(device.memoryShareAfter - extremes.leastMemoryAfter);
    put(extremes.memoryFree);
    put(1 - device.memoryShareAfter - largestLeft);
    put(largestLeft);
    put((memoryLeft - placing.memoryShare) / count);
    put(placing.aloneMs / meanMs);
    put(placing.exchangeBytes / meanBytes);
    put((msLeft - placing.aloneMs) / (meanMs * count));
    put(std::log1p(static_cast<double>(piecesLeft) / count));
    put(std::log1p(static_cast<double>(task.pieces.size()) / count));
    put(std::log(count));
    put(extremes.meanMs / meanMs);
    put(task.objective == ObjectiveKind::Step);
  }
}
