//===- StagedExchange.cpp - Exchanges over relays, stage by stage ---------===//

#include "StagedExchange.h"

#include "RelayLoads.h"
#include "neuroshard/Artifact/RelayPieces.h"

#include <algorithm>
#include <utility>

using namespace neuroshard;

namespace {

/// What each device gets if the devices of its group send it evenly.
std::vector<double> meansOfGroups(const std::vector<double> &bytes,
                                  size_t groupSize) {
  std::vector<double> means(bytes.size());
  for (size_t first = 0; first < bytes.size(); first += groupSize) {
    double sum = 0;
    for (size_t i = 0; i < groupSize; ++i)
      sum += bytes[first + i];
    for (size_t i = 0; i < groupSize; ++i)
      means[first + i] = sum / static_cast<double>(groupSize);
  }
  return means;
}

/// What each device gets if those with its index in all groups send it evenly.
std::vector<double> meansOfIndices(const std::vector<double> &bytes,
                                   size_t groupSize) {
  std::vector<double> means(bytes.size());
  double groups =
      static_cast<double>(bytes.size()) / static_cast<double>(groupSize);
  for (size_t i = 0; i < bytes.size(); ++i)
    means[i % groupSize] += bytes[i] / groups;
  for (size_t i = groupSize; i < bytes.size(); ++i)
    means[i] = means[i % groupSize];
  return means;
}

std::vector<double> fieldOf(std::span<const RelayLoad> relays,
                            double RelayLoad::*field) {
  std::vector<double> values;
  for (const RelayLoad &relay : relays)
    values.push_back(relay.*field);
  return values;
}

bool hasAny(std::span<const DeviceLoad> loads, double DeviceLoad::*bytes) {
  return std::ranges::any_of(
      loads, [&](const DeviceLoad &load) { return load.*bytes > 0; });
}

bool haveCopySums(std::span<const DeviceLoad> loads) {
  return hasAny(loads, &DeviceLoad::insideCopySumBytes) ||
         hasAny(loads, &DeviceLoad::outsideCopySumBytes);
}

bool isStaged(std::span<const DeviceLoad> loads,
              std::span<const RelayLoad> relays, Direction direction) {
  bool readsInside = hasAny(loads, &DeviceLoad::insideForwardBytes);
  if (direction == Direction::Input)
    return hasAny(loads, &DeviceLoad::groupInputBytes) || readsInside;
  if (readsInside)
    return true;
  bool sendsInside = direction == Direction::Backward &&
                     (hasAny(loads, &DeviceLoad::insideNormBytes) ||
                      hasAny(loads, &DeviceLoad::insideGradientBytes));
  return sendsInside ||
         std::ranges::any_of(relays, [&](const RelayLoad &relay) {
           return direction == Direction::Forward
                      ? relay.forwardInside + relay.forwardAcross > 0
                      : relay.backwardInside + relay.backwardAcross > 0;
         });
}

} // namespace

// Without groups all is outside. What a stage spreads evenly stays in part
// where it is; what copies exchange is for other devices alone.
static Traffic betweenCopies(const Topology &topology,
                             std::vector<double> inside,
                             std::vector<double> outside) {
  auto devices = static_cast<double>(outside.size());
  double groupSize = relayGroupSize(topology);
  auto addOwn = [](std::vector<double> &bytes, double peers) {
    for (double &one : bytes)
      one *= peers > 1 ? peers / (peers - 1) : 0;
  };
  addOwn(inside, groupSize);
  addOwn(outside, groupSize > 0 ? devices / groupSize : devices);
  std::vector<double> none(outside.size());
  if (groupSize == 0)
    return {&topology, none, outside, outside};
  Traffic traffic{&topology, none, none, none};
  traffic.insideOut = traffic.insideIn = std::move(inside);
  traffic.acrossOut = traffic.acrossIn = std::move(outside);
  return traffic;
}

/// A field of each device, times a factor.
static std::vector<double> fieldOf(std::span<const DeviceLoad> loads,
                                   double DeviceLoad::*field,
                                   double factor = 1) {
  std::vector<double> values;
  for (const DeviceLoad &load : loads)
    values.push_back(load.*field * factor);
  return values;
}

std::optional<Traffic>
neuroshard::copySumStage(const Topology &topology,
                         std::span<const DeviceLoad> loads) {
  if (!haveCopySums(loads))
    return std::nullopt;
  return betweenCopies(topology,
                       fieldOf(loads, &DeviceLoad::insideCopySumBytes),
                       fieldOf(loads, &DeviceLoad::outsideCopySumBytes));
}

std::optional<Traffic>
neuroshard::averageStage(const Topology &topology,
                         std::span<const DeviceLoad> loads, double &perStep) {
  perStep = 0;
  for (const DeviceLoad &load : loads)
    perStep = std::max(perStep, load.averagesPerStep());
  if (perStep == 0)
    return std::nullopt;
  // Parts, then averages: each half of the bytes.
  double share = 0.5 / perStep;
  perStep *= 2;
  return betweenCopies(topology,
                       fieldOf(loads, &DeviceLoad::insideAverageBytes, share),
                       fieldOf(loads, &DeviceLoad::outsideAverageBytes, share));
}

std::vector<Traffic> neuroshard::sumStages(const Topology &topology,
                                           std::span<const DeviceLoad> loads) {
  if (!hasAny(loads, &DeviceLoad::lateSumBytes))
    return {};
  std::vector<double> none(loads.size()), first, sums, shares;
  int groupSize = relayGroupSize(topology);
  for (const DeviceLoad &load : loads) {
    sums.push_back(load.rowSumBytes / 2);
    first.push_back(load.lateSumBytes - sums.back());
    shares.push_back(sums.back() / std::max(groupSize, 1));
  }
  bool isFirstLate = std::ranges::any_of(first, [](double b) { return b > 0; });
  std::vector<Traffic> stages;
  auto add = [&](std::vector<double> direct, std::vector<double> inside,
                 std::vector<double> across) {
    Traffic &stage = stages.emplace_back(
        Traffic{&topology, none, direct, std::move(direct)});
    if (groupSize == 0)
      return;
    stage.insideOut = stage.insideIn = std::move(inside);
    stage.acrossOut = stage.acrossIn = std::move(across);
  };
  if (groupSize == 0) {
    if (isFirstLate)
      add(first, {}, {});
    add(sums, {}, {});
    return stages;
  }
  if (isFirstLate)
    add(none, first, none);
  add(none, none, shares);
  add(none, none, shares);
  add(none, sums, none);
  return stages;
}

/// Takes late sums of rows out of the loads, and puts the others into the first
/// messages: those within groups, where there are groups.
static void splitRowSums(const Topology &topology,
                         std::vector<DeviceLoad> &loads) {
  bool hasGroups = relayGroupSize(topology) > 0;
  for (DeviceLoad &load : loads) {
    double late = std::exchange(load.lateSumBytes, 0);
    double early = std::exchange(load.rowSumBytes, 0) - late;
    load.backwardBytes = std::max(0.0, load.backwardBytes - late);
    if (hasGroups)
      load.insideGradientBytes += early;
  }
}

std::vector<Traffic> neuroshard::exchangeStages(
    const Topology &topology, std::span<const DeviceLoad> loads,
    std::span<const RelayLoad> relays, Direction direction) {
  if (direction == Direction::Backward && haveCopySums(loads)) {
    std::vector<DeviceLoad> others(loads.begin(), loads.end());
    for (DeviceLoad &load : others) {
      load.backwardBytes -= std::exchange(load.insideCopySumBytes, 0) +
                            std::exchange(load.outsideCopySumBytes, 0);
    }
    return exchangeStages(topology, others, relays, direction);
  }
  if (direction == Direction::Backward &&
      hasAny(loads, &DeviceLoad::rowSumBytes)) {
    std::vector<DeviceLoad> others(loads.begin(), loads.end());
    splitRowSums(topology, others);
    return exchangeStages(topology, others, relays, direction);
  }
  if (!isStaged(loads, relays, direction))
    return {trafficOf(topology, loads, direction)};
  std::vector<RelayLoad> staged(relays.begin(), relays.end());
  staged.resize(loads.size());
  std::vector<DeviceLoad> direct(loads.begin(), loads.end());
  for (size_t i = 0; i < direct.size(); ++i) {
    double norms = std::exchange(direct[i].insideNormBytes, 0);
    direct[i].backwardBytes -= norms;
    staged[i].backwardInside += norms;
    direct[i].forwardBytes -= direct[i].insideForwardBytes;
    direct[i].backwardBytes -= direct[i].insideGradientBytes;
    staged[i].forwardInside += direct[i].insideForwardBytes;
    // Of a staged exchange of ids nothing goes directly.
    direct[i].inputBytes = 0;
  }
  // What goes directly is in the messages of the first stage.
  std::vector<Traffic> stages;
  stages.push_back(trafficOf(topology, direct, direction));
  std::vector<double> none(loads.size());
  stages.push_back({&topology, none, none, none});
  for (Traffic &stage : stages)
    stage.insideOut = stage.insideIn = stage.acrossOut = stage.acrossIn = none;
  auto groupSize =
      static_cast<size_t>(topology.levels.back().groupSizes.front());
  if (direction == Direction::Forward) {
    Traffic &inside = stages[0], &across = stages[1];
    inside.insideOut = fieldOf(staged, &RelayLoad::forwardInside);
    inside.insideIn = meansOfGroups(inside.insideOut, groupSize);
    across.acrossOut = fieldOf(staged, &RelayLoad::forwardAcross);
    across.acrossIn = meansOfIndices(across.acrossOut, groupSize);
    return stages;
  }
  Traffic &across = stages[0], &inside = stages[1];
  if (direction == Direction::Input) {
    std::vector<double> ofDevices;
    for (const DeviceLoad &load : loads) {
      ofDevices.push_back(load.groupInputBytes);
      inside.insideIn[ofDevices.size() - 1] = load.inputBytes;
    }
    across.acrossIn = meansOfGroups(ofDevices, groupSize);
  } else {
    across.acrossIn = fieldOf(staged, &RelayLoad::backwardAcross);
    inside.insideIn = fieldOf(staged, &RelayLoad::backwardInside);
    // Gradients for copies are in the messages of the first stage.
    for (size_t i = 0; i < loads.size(); ++i)
      across.insideIn[i] = loads[i].insideGradientBytes;
    across.insideOut = meansOfGroups(across.insideIn, groupSize);
  }
  across.acrossOut = meansOfIndices(across.acrossIn, groupSize);
  inside.insideOut = meansOfGroups(inside.insideIn, groupSize);
  return stages;
}

int64_t neuroshard::piecesOf(std::span<const RelayLoad> relays,
                             Direction direction) {
  if (relays.empty() || direction == Direction::Input)
    return 1;
  double across = 0;
  for (const RelayLoad &relay : relays)
    across += direction == Direction::Forward ? relay.forwardAcross
                                              : relay.backwardAcross;
  return relayPieces(across / static_cast<double>(relays.size()));
}

StagedExchange::StagedExchange(const CostModel &model, const Topology &topology,
                               std::span<const DeviceLoad> loads,
                               std::span<const RelayLoad> relays,
                               Direction direction)
    : model(model), stages(exchangeStages(topology, loads, relays, direction)),
      direction(direction), pieces(piecesOf(relays, direction)) {
  if (direction == Direction::Backward) {
    copySums = copySumStage(topology, loads);
    averages = averageStage(topology, loads, averagesPerStep);
    sums = sumStages(topology, loads);
  }
  if (pieces == 1)
    return;
  std::vector<RelayLoad> piece(relays.begin(), relays.end());
  for (RelayLoad &load : piece)
    for (double *bytes : {&load.forwardInside, &load.forwardAcross,
                          &load.backwardInside, &load.backwardAcross})
      *bytes /= static_cast<double>(pieces);
  firstPiece = exchangeStages(topology, loads, piece, direction);
  laterPiece = exchangeStages(topology, std::vector<DeviceLoad>(loads.size()),
                              piece, direction);
}

double StagedExchange::slowestOf(const Traffic &stage) const {
  std::vector<double> times = model.communicationMs(stage, {}, direction);
  return *std::max_element(times.begin(), times.end());
}

void StagedExchange::measurePieces() {
  firstPieceMs = slowestOf(firstPiece[0]);
  for (size_t stage : {0, 1})
    laterPieceMs[stage] = slowestOf(laterPiece[stage]);
}

double StagedExchange::piecesMs(size_t stage) const {
  // Each piece is a message, which a stage in one is not.
  double first = stage == 0 ? firstPieceMs : laterPieceMs[1];
  return std::max(slowestMs[stage], first + static_cast<double>(pieces - 1) *
                                                laterPieceMs[stage]);
}

std::vector<double>
StagedExchange::timesMs(std::span<const double> startSkewsMs) {
  std::vector<double> times = valueTimesMs(startSkewsMs);
  auto add = [&](const Traffic &stage) {
    std::vector<double> one = model.communicationMs(stage, {}, direction);
    for (size_t i = 0; i < times.size(); ++i)
      times[i] += one[i];
    return *std::ranges::max_element(one);
  };
  copySumsMs = copySums ? add(*copySums) : 0;
  lateSumsMs = 0;
  for (const Traffic &stage : sums)
    lateSumsMs += add(stage);
  return times;
}

/// When all devices have ended, after an exchange that begins when the last is
/// ready: until then the links have others to carry.
static std::vector<double> afterAll(std::vector<double> startsMs, double ms) {
  if (ms > 0)
    std::ranges::fill(startsMs, *std::ranges::max_element(startsMs) + ms);
  return startsMs;
}

std::vector<double>
StagedExchange::arrivalsMs(std::vector<double> startsMs,
                           std::span<const double> makesMs) const {
  return afterAll(valueArrivalsMs(std::move(startsMs), makesMs), copySumsMs);
}

std::vector<double>
StagedExchange::sumArrivalsMs(std::vector<double> startsMs) const {
  return afterAll(std::move(startsMs), lateSumsMs);
}

double StagedExchange::averagesMs() const {
  return averages ? averagesPerStep * slowestOf(*averages) : 0;
}

std::vector<double>
StagedExchange::valueTimesMs(std::span<const double> startSkewsMs) {
  std::vector<double> sum;
  slowestMs.clear();
  for (const Traffic &stage : stages) {
    bool isFirst = sum.empty();
    std::vector<double> times = model.communicationMs(
        stage, isFirst ? startSkewsMs : std::span<const double>(), direction);
    slowestMs.push_back(*std::max_element(times.begin(), times.end()));
    if (isFirst) {
      sum = std::move(times);
      continue;
    }
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += times[i];
  }
  if (pieces == 1)
    return sum;
  measurePieces();
  double both = slowestMs[0] + slowestMs[1];
  double overlapped =
      std::max(piecesMs(0) + laterPieceMs[1], firstPieceMs + piecesMs(1));
  double others = laterStagesMs() - slowestMs[1];
  double share = both > 0 ? (overlapped + others) / (both + others) : 1;
  for (double &time : sum)
    time *= share;
  return sum;
}

std::vector<double>
StagedExchange::valueArrivalsMs(std::vector<double> startsMs,
                                std::span<const double> makesMs) const {
  if (pieces == 1) {
    for (size_t i = 0; i < stages.size(); ++i)
      startsMs = after(stages[i], slowestMs[i], startsMs);
    return startsMs;
  }
  auto later = [](std::vector<double> one, const std::vector<double> &other) {
    for (size_t i = 0; i < one.size(); ++i)
      one[i] = std::max(one[i], other[i]);
    return one;
  };
  std::vector<double> firstMs = startsMs;
  for (size_t i = 0; i < makesMs.size(); ++i)
    firstMs[i] -= makesMs[i] * (1 - 1 / static_cast<double>(pieces));
  // The first stages go on all the time, or the last one begins when its piece
  // is made. Then its second stage follows; or the second ones go on all the
  // time, once the first piece is there and all are made.
  std::vector<double> firstStages =
      later(after(stages[0], piecesMs(0), firstMs),
            after(laterPiece[0], laterPieceMs[0], startsMs));
  std::vector<double> begun =
      later(after(firstPiece[0], firstPieceMs, firstMs), startsMs);
  return later(after(laterPiece[1], laterPieceMs[1], firstStages),
               after(stages[1], piecesMs(1), begun));
}
