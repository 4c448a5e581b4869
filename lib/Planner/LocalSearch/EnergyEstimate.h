//===- EnergyEstimate.h - Smoothed objective after an edit ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ENERGYESTIMATE_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ENERGYESTIMATE_H

#include "FetchEstimate.h"

#include <array>
#include <utility>
#include <vector>

namespace neuroshard {

/// The cost of a board under one set of statistics, and estimates of it after
/// an edit.
///
/// The energy is the objective with each maximum over the devices replaced by a
/// p-norm, which also falls when one of several equally slow devices gets
/// faster. An estimate takes constant time: compute comes from the model,
/// communication from a linear approximation of the model around the state that
/// measure() found.
class EnergyEstimate {
public:
  EnergyEstimate(const Board &board, int period, int power);

  /// Measures the board with the model; `probe`: also how communication changes
  /// with the loads.
  void measure(bool probe);
  /// The objective when last measured.
  double costMs() const { return exactMs; }
  /// The energy now / its estimate after an edit.
  double energyMs() const { return energy; }
  double energyAfter(const LoadChange &change) const;
  /// energyAfter(change) < limitMs, usually decided by boundsAfter(), which
  /// needs no logarithm.
  bool isBelow(const LoadChange &change, double limitMs) const;
  /// A lower and an upper bound of energyAfter(); both are the energy itself
  /// where the bounds do not hold.
  std::pair<double, double> boundsAfter(const LoadChange &change) const;
  /// The exact objective after an edit.
  double costAfter(const LoadChange &change);
  /// Follows an edit.
  void apply(const LoadChange &change);
  /// Sets the power of the p-norm, a power of two; the higher, the closer the
  /// norm is to the maximum.
  void setPower(int power);

  /// The devices with one of the maxima, when last measured.
  const std::vector<int> &critical() const { return criticalDevices; }

private:
  /// Of each device but for Disk, which is of each host.
  enum Metric {
    Compute,
    Forward,
    Backward,
    Input,
    Out,
    In,
    Link,
    Disk,
    kMetrics
  };
  using Values = std::array<double, kMetrics>;

  /// Linear approximation of communication in one direction: its time at the
  /// slowest device, and its slopes over a device's own dims and bytes and over
  /// the largest of all devices. Times are those of the fastest device; others
  /// take `slowness` times as long.
  struct Line {
    double topMs = 0, topDims = 0, topBytes = 0, floorMs = 0;
    double perDim = 0, perByte = 0, perMaxDim = 0, perMaxByte = 0;
  };
  struct Largest {
    std::array<double, 3> values = {};
    std::array<int, 3> devices = {-1, -1, -1};
    double without(int a, int b) const;
  };

  std::span<const DeviceLoad> loads() const {
    return board.totals().in(period).loads();
  }
  std::vector<double> exchange(std::span<const DeviceLoad> loads,
                               Direction direction) const;
  double slownessOf(size_t device, Direction direction) const;
  void probe(Direction direction, Line &line);
  void fitLine(Direction direction, const std::vector<double> &times);
  Largest largestOf(Direction direction, bool dims) const;
  double communication(size_t device, const DeviceLoad &load,
                       Direction direction) const;
  Values valuesOf(int device, const DeviceLoad &load) const;
  double shiftAfter(const LoadChange &change, Direction direction) const;
  void raise(Values &values) const;
  double diskPower(double ms) const;
  double disksAfter(const LoadChange &change) const;
  double root(double sum) const;
  /// The metrics that count.
  size_t firstMetric() const { return published ? Compute : Forward; }
  size_t endMetric() const {
    return published ? Forward : fetch.isUsed() ? kMetrics : Link;
  }
  double compose(const Values &norms) const;
  double energyOf(const Values &sums) const;
  void findCritical(const CostBreakdown &breakdown);
  /// False when the bounds do not hold.
  bool boundNorms(const Values &after, Values &low, Values &high) const;
  Values powersOf(const Values &values) const;
  Values sumsAfter(const LoadChange &change, const Values &shifts) const;
  Values shiftsAfter(const LoadChange &change) const;
  void takeNorms();

  const Board &board;
  const int period;
  const ObjectiveOptions &options;
  const bool published;
  FetchEstimate fetch;
  int doublings = 4;
  double exactMs = 0;
  double energy = 0;
  std::array<Line, 3> lines;
  /// By direction and device; empty where all devices are alike.
  std::array<std::vector<double>, 3> slowness;
  /// Does the load of one device slow the exchange of the others?
  bool shiftsOthers = false;
  std::array<Largest, 3> maxDims, maxBytes;
  /// Per device: (value / scale) ^ power.
  std::vector<Values> powers;
  /// Sum of them over the devices.
  Values sums = {}, scales = {}, inverseScales = {};
  /// scale x sum ^ (1 / power).
  Values norms = {};
  std::vector<DeviceLoad> scratch;
  std::vector<int> criticalDevices;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ENERGYESTIMATE_H
