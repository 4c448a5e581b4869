//===- EnergyEstimate.cpp - Smoothed objective after an edit --------------===//

#include "EnergyEstimate.h"

#include "Cost/StagedExchange.h"
#include "ExchangeSlowness.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace neuroshard;

namespace {

/// Loads are changed by this share to measure slopes of communication.
constexpr double kProbeShare = 0.05;
/// Slopes below this share of another are rounding errors.
constexpr double kNoSlope = 1e-3;
/// Scale of metrics that are 0 on every device, as a share of the cost.
constexpr double kMinScale = 1e-3;

constexpr Direction kDirections[] = {Direction::Input, Direction::Forward,
                                     Direction::Backward};

size_t indexOf(Direction direction) { return static_cast<size_t>(direction); }

constexpr double DeviceLoad::*kBytes[] = {&DeviceLoad::inputBytes,
                                          &DeviceLoad::forwardBytes,
                                          &DeviceLoad::backwardBytes};

double bytesOf(const DeviceLoad &load, Direction direction) {
  return load.*kBytes[indexOf(direction)];
}

} // namespace

EnergyEstimate::EnergyEstimate(const Board &board, int period, int power)
    : board(board), period(period), options(board.context().options.objective),
      published(options.kind == ObjectiveKind::Published),
      fetch(board.context()) {
  doublings = std::max(1, static_cast<int>(std::log2(power)));
  slowness = exchangeSlowness(board.context(), loads());
  measure(true);
}

void EnergyEstimate::setPower(int power) {
  doublings = std::max(1, static_cast<int>(std::log2(power)));
}

std::vector<double> EnergyEstimate::exchange(std::span<const DeviceLoad> loads,
                                             Direction direction) const {
  const SearchContext &context = board.context();
  return StagedExchange(context.model, context.problem.topology, loads, {},
                        direction)
      .timesMs();
}

double EnergyEstimate::slownessOf(size_t device, Direction direction) const {
  const std::vector<double> &list = slowness[indexOf(direction)];
  return list.empty() ? 1 : list[device];
}

/// Measures slopes by shifting dims, then bytes, from the device with the least
/// to the one with the most. The change at the other devices is due to the
/// largest load, the rest to a device's own.
void EnergyEstimate::probe(Direction direction, Line &line) {
  line.perDim = line.perByte = line.perMaxDim = line.perMaxByte = 0;
  size_t count = loads().size();
  if (count < 2)
    return;
  std::vector<double> before = exchange(loads(), direction);
  auto slopes = [&](double DeviceLoad::*field, double &own, double &ofLargest) {
    scratch.assign(loads().begin(), loads().end());
    size_t most = 0, least = count - 1;
    for (size_t d = 0; d < count; ++d) {
      if (scratch[d].*field > scratch[most].*field)
        most = d;
      if (scratch[d].*field < scratch[least].*field)
        least = d;
    }
    double shift = kProbeShare * scratch[most].*field;
    if (shift <= 0 || most == least)
      return;
    scratch[most].*field += shift;
    scratch[least].*field = std::max(0.0, scratch[least].*field - shift);
    std::vector<double> after = exchange(scratch, direction);
    for (size_t d = 0; d < count; ++d)
      after[d] = (after[d] - before[d]) / slownessOf(d, direction);
    std::vector<double> others;
    for (size_t d = 0; d < count; ++d)
      if (d != most && d != least)
        others.push_back(after[d]);
    double self = after[most];
    double other = (self + after[least]) / 2;
    if (!others.empty()) {
      auto middle =
          others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
      std::nth_element(others.begin(), middle, others.end());
      other = *middle;
    }
    if (std::abs(other) < kNoSlope * std::abs(self))
      other = 0;
    own = std::max(0.0, (self - other) / shift);
    ofLargest = std::max(0.0, other / shift);
  };
  if (direction != Direction::Input)
    slopes(&DeviceLoad::dims, line.perDim, line.perMaxDim);
  slopes(kBytes[indexOf(direction)], line.perByte, line.perMaxByte);
}

void EnergyEstimate::fitLine(Direction direction,
                             const std::vector<double> &times) {
  Line &line = lines[indexOf(direction)];
  size_t top = static_cast<size_t>(
      std::max_element(times.begin(), times.end()) - times.begin());
  const DeviceLoad &load = loads()[top];
  line.topMs = times[top] / slownessOf(top, direction);
  line.topDims = load.dims;
  line.topBytes = bytesOf(load, direction);
  line.floorMs = line.topMs;
  for (size_t d = 0; d < times.size(); ++d)
    line.floorMs = std::min(line.floorMs, times[d] / slownessOf(d, direction));
  maxDims[indexOf(direction)] =
      line.perMaxDim > 0 ? largestOf(direction, true) : Largest();
  maxBytes[indexOf(direction)] =
      line.perMaxByte > 0 ? largestOf(direction, false) : Largest();
  shiftsOthers = shiftsOthers || line.perMaxDim > 0 || line.perMaxByte > 0;
}

EnergyEstimate::Largest EnergyEstimate::largestOf(Direction direction,
                                                  bool dims) const {
  Largest largest;
  std::span<const DeviceLoad> loads = this->loads();
  for (size_t d = 0; d < loads.size(); ++d) {
    double value = dims ? loads[d].dims : bytesOf(loads[d], direction);
    int device = static_cast<int>(d);
    for (size_t i = 0; i < 3; ++i)
      if (largest.devices[i] < 0 || value > largest.values[i]) {
        std::swap(value, largest.values[i]);
        std::swap(device, largest.devices[i]);
        if (device < 0)
          break;
      }
  }
  return largest;
}

double EnergyEstimate::Largest::without(int a, int b) const {
  for (size_t i = 0; i < 3; ++i)
    if (devices[i] >= 0 && devices[i] != a && devices[i] != b)
      return values[i];
  return 0;
}

double EnergyEstimate::communication(size_t device, const DeviceLoad &load,
                                     Direction direction) const {
  const Line &line = lines[indexOf(direction)];
  double bytes = bytesOf(load, direction);
  double ms = std::max(line.floorMs,
                       line.topMs + line.perDim * (load.dims - line.topDims) +
                           line.perByte * (bytes - line.topBytes));
  return ms * slownessOf(device, direction);
}

EnergyEstimate::Values EnergyEstimate::valuesOf(int device,
                                                const DeviceLoad &load) const {
  Values result = {};
  size_t index = static_cast<size_t>(device);
  double forward = communication(index, load, Direction::Forward);
  double backward = communication(index, load, Direction::Backward);
  if (published) {
    result[Compute] = load.compute.total() + forward + backward;
    return result;
  }
  result[Forward] = load.compute.forwardMs;
  result[Backward] = load.compute.backwardMs;
  result[Input] = communication(index, load, Direction::Input);
  result[Out] = forward;
  result[In] = backward;
  result[Link] = fetch.hostMemoryMs(index, load);
  return result;
}

/// Raises all values together, so that compilers use vector instructions.
void EnergyEstimate::raise(Values &values) const {
  for (int i = 0; i < doublings; ++i)
    for (double &value : values)
      value *= value;
}

EnergyEstimate::Values EnergyEstimate::powersOf(const Values &values) const {
  Values result;
  for (size_t m = 0; m < kMetrics; ++m)
    result[m] = values[m] * inverseScales[m];
  raise(result);
  return result;
}

double EnergyEstimate::diskPower(double ms) const {
  double power = ms * inverseScales[Disk];
  for (int i = 0; i < doublings; ++i)
    power *= power;
  return power;
}

/// The sum over hosts after an edit.
double EnergyEstimate::disksAfter(const LoadChange &change) const {
  FetchEstimate::Disks disks = fetch.disksAfter(change);
  double sum = sums[Disk];
  for (size_t i = 0; i < disks.count; ++i)
    sum += diskPower(disks.ms[i]) - diskPower(fetch.diskMs(disks.hosts[i]));
  return std::max(0.0, sum);
}

double EnergyEstimate::root(double sum) const {
  return std::exp(std::log(sum) / static_cast<double>(1 << doublings));
}

double EnergyEstimate::compose(const Values &norms) const {
  if (published)
    return norms[Compute];
  double after = options.denseRestMs + norms[Backward];
  bool pipelined = options.pipelineDepth > 1;
  double hidden = pipelined ? after : 0;
  bool fetchesAhead = pipelined && powers.size() > 1;
  double fetchHidden = fetchesAhead ? norms[Backward] + norms[In] : 0;
  return std::max(0.0, norms[Input] - hidden) +
         std::max(0.0, norms[Link] + norms[Disk] - fetchHidden) +
         norms[Forward] + std::max(norms[Out], options.denseBottomMs) + after +
         norms[In];
}

double EnergyEstimate::energyOf(const Values &sums) const {
  Values result = {};
  for (size_t m = firstMetric(); m < endMetric(); ++m)
    result[m] = scales[m] * root(sums[m]);
  return compose(result);
}

void EnergyEstimate::takeNorms() {
  norms = {};
  for (size_t m = firstMetric(); m < endMetric(); ++m)
    norms[m] = scales[m] * root(sums[m]);
  energy = compose(norms);
}

void EnergyEstimate::measure(bool probeAgain) {
  const SearchContext &context = board.context();
  std::span<const DeviceLoad> loads = this->loads();
  CostBreakdown cost =
      composeCost(context.problem.topology, loads, context.model, options);
  exactMs = cost.costMs;
  findCritical(cost);
  std::array<std::vector<double>, 3> times;
  shiftsOthers = false;
  for (Direction direction : kDirections) {
    std::vector<double> &one = times[indexOf(direction)];
    if (published && direction == Direction::Input) {
      one.resize(loads.size());
    } else if (published) {
      one = exchange(loads, direction);
    } else {
      for (const DeviceCost &device : cost.devices)
        one.push_back(direction == Direction::Input ? device.inputMs
                      : direction == Direction::Forward
                          ? device.forwardCommunicationMs
                          : device.backwardCommunicationMs);
    }
    if (probeAgain && !(published && direction == Direction::Input))
      probe(direction, lines[indexOf(direction)]);
    fitLine(direction, one);
  }
  if (!published)
    fetch.measure(loads);
  powers.resize(loads.size());
  scales.fill(kMinScale * exactMs);
  for (size_t d = 0; d < loads.size(); ++d) {
    Values &value = powers[d];
    value = {};
    const ComputeMs &compute = loads[d].compute;
    if (published) {
      value[Compute] = compute.total() + times[1][d] + times[2][d];
    } else {
      value[Forward] = compute.forwardMs;
      value[Backward] = compute.backwardMs;
      value[Input] = times[0][d];
      value[Out] = times[1][d];
      value[In] = times[2][d];
      value[Link] = fetch.hostMemoryMs(d, loads[d]);
    }
    for (size_t m = 0; m < kMetrics; ++m)
      scales[m] = std::max(scales[m], value[m]);
  }
  for (size_t host = 0; fetch.isUsed() && host < fetch.hostCount(); ++host)
    scales[Disk] = std::max(scales[Disk], fetch.diskMs(host));
  for (size_t m = 0; m < kMetrics; ++m)
    inverseScales[m] = scales[m] > 0 ? 1 / scales[m] : 0;
  sums.fill(0);
  for (size_t host = 0; fetch.isUsed() && host < fetch.hostCount(); ++host)
    sums[Disk] += diskPower(fetch.diskMs(host));
  for (Values &value : powers) {
    value = powersOf(value);
    for (size_t m = 0; m < kMetrics; ++m)
      sums[m] += value[m];
  }
  takeNorms();
}

void EnergyEstimate::findCritical(const CostBreakdown &breakdown) {
  criticalDevices.clear();
  std::span<const DeviceLoad> loads = this->loads();
  auto addLargest = [&](auto value) {
    int largest = 0;
    for (int device = 1; device < static_cast<int>(loads.size()); ++device)
      if (value(static_cast<size_t>(device)) >
          value(static_cast<size_t>(largest)))
        largest = device;
    if (std::find(criticalDevices.begin(), criticalDevices.end(), largest) ==
        criticalDevices.end())
      criticalDevices.push_back(largest);
  };
  addLargest([&](size_t d) {
    const DeviceCost &cost = breakdown.devices[d];
    return cost.compute.total() + (published ? cost.forwardCommunicationMs +
                                                   cost.backwardCommunicationMs
                                             : 0);
  });
  addLargest([&](size_t d) { return loads[d].compute.forwardMs; });
  addLargest([&](size_t d) { return loads[d].compute.backwardMs; });
  addLargest([&](size_t d) { return loads[d].dims; });
  addLargest([&](size_t d) { return loads[d].forwardBytes; });
  addLargest([&](size_t d) { return loads[d].inputBytes; });
  if (fetch.isUsed())
    addLargest([&](size_t d) { return breakdown.devices[d].fetchMs; });
}

/// By how much the communication of the other devices changes, because the
/// largest load changes.
double EnergyEstimate::shiftAfter(const LoadChange &change,
                                  Direction direction) const {
  const Line &line = lines[indexOf(direction)];
  double shift = 0;
  if (line.perMaxDim > 0) {
    const Largest &most = maxDims[indexOf(direction)];
    double after = std::max({most.without(change.device, change.target),
                             change.load.dims, change.targetLoad.dims});
    shift += line.perMaxDim * (after - most.values[0]);
  }
  if (line.perMaxByte > 0) {
    const Largest &most = maxBytes[indexOf(direction)];
    double after = std::max({most.without(change.device, change.target),
                             bytesOf(change.load, direction),
                             bytesOf(change.targetLoad, direction)});
    shift += line.perMaxByte * (after - most.values[0]);
  }
  return shift;
}

EnergyEstimate::Values
EnergyEstimate::shiftsAfter(const LoadChange &change) const {
  Values shifts = {};
  if (!shiftsOthers)
    return shifts;
  double forward = shiftAfter(change, Direction::Forward);
  double backward = shiftAfter(change, Direction::Backward);
  if (published) {
    shifts[Compute] = forward + backward;
    return shifts;
  }
  shifts[Input] = shiftAfter(change, Direction::Input);
  shifts[Out] = forward;
  shifts[In] = backward;
  return shifts;
}

EnergyEstimate::Values EnergyEstimate::sumsAfter(const LoadChange &change,
                                                 const Values &shifts) const {
  Values here = valuesOf(change.device, change.load);
  Values there = valuesOf(change.target, change.targetLoad);
  const Values &oldHere = powers[static_cast<size_t>(change.device)];
  const Values &oldThere = powers[static_cast<size_t>(change.target)];
  bool same = change.device == change.target;
  Values result;
  for (size_t m = 0; m < kMetrics; ++m) {
    result[m] =
        std::max(0.0, sums[m] - oldHere[m] - (same ? 0.0 : oldThere[m]));
    here[m] += shifts[m];
    there[m] = same ? 0.0 : there[m] + shifts[m];
  }
  if (shiftsOthers) {
    Values factors;
    for (size_t m = 0; m < kMetrics; ++m)
      factors[m] = std::max(0.0, 1 + shifts[m] * inverseScales[m]);
    raise(factors);
    for (size_t m = 0; m < kMetrics; ++m)
      result[m] *= factors[m];
  }
  here = powersOf(here);
  there = powersOf(there);
  for (size_t m = 0; m < kMetrics; ++m)
    result[m] += here[m] + there[m];
  if (fetch.isUsed())
    result[Disk] = disksAfter(change);
  return result;
}

double EnergyEstimate::energyAfter(const LoadChange &change) const {
  return energyOf(sumsAfter(change, shiftsAfter(change)));
}

/// x = new sum / old sum changes a norm by the factor x ^ (1 / p). With
/// log x between 2 (x - 1) / (x + 1) and x - 1 (above 1), or between 1 - 1 / x
/// and 2 (x - 1) / (x + 1) (below 1), and exp y between 1 + y and
/// 1 + y + y^2 / 2 (y < 0), that factor has bounds of a few operations.
bool EnergyEstimate::boundNorms(const Values &after, Values &low,
                                Values &high) const {
  double share = 1 / static_cast<double>(1 << doublings);
  low = high = {};
  for (size_t m = 0; m < kMetrics; ++m) {
    if (after[m] <= 0)
      continue;
    if (sums[m] <= 0)
      return false;
    double x = after[m] / sums[m];
    double tangent = share * (x - 1);
    double middle = 2 * tangent / (x + 1);
    if (x >= 1) {
      low[m] = norms[m] * (1 + middle);
      high[m] = norms[m] * (1 + tangent);
    } else {
      low[m] = norms[m] * std::max(0.0, 1 + tangent / x);
      high[m] = norms[m] * (1 + middle + middle * middle / 2);
    }
  }
  return true;
}

bool EnergyEstimate::isBelow(const LoadChange &change, double limitMs) const {
  Values after = sumsAfter(change, shiftsAfter(change));
  Values low, high;
  if (!boundNorms(after, low, high))
    return energyOf(after) < limitMs;
  if (compose(low) >= limitMs)
    return false;
  return compose(high) < limitMs || energyOf(after) < limitMs;
}

std::pair<double, double>
EnergyEstimate::boundsAfter(const LoadChange &change) const {
  Values after = sumsAfter(change, shiftsAfter(change));
  Values low, high;
  if (boundNorms(after, low, high))
    return {compose(low), compose(high)};
  double energy = energyOf(after);
  return {energy, energy};
}

double EnergyEstimate::costAfter(const LoadChange &change) {
  scratch.assign(loads().begin(), loads().end());
  scratch[static_cast<size_t>(change.device)] = change.load;
  scratch[static_cast<size_t>(change.target)] = change.targetLoad;
  return composeCost(board.context().problem.topology, scratch,
                     board.context().model, options)
      .costMs;
}

void EnergyEstimate::apply(const LoadChange &change) {
  Values shifts = shiftsAfter(change);
  sums = sumsAfter(change, shifts);
  auto follow = [&](int device, const DeviceLoad &load) {
    Values value = valuesOf(device, load);
    for (size_t m = 0; m < kMetrics; ++m)
      value[m] += shifts[m];
    powers[static_cast<size_t>(device)] = powersOf(value);
  };
  follow(change.device, change.load);
  follow(change.target, change.targetLoad);
  fetch.apply(change);
  for (Direction direction : kDirections) {
    Line &line = lines[indexOf(direction)];
    double shift = shiftAfter(change, direction);
    line.topMs += shift;
    line.floorMs += shift;
    if (line.perMaxDim > 0)
      maxDims[indexOf(direction)] = largestOf(direction, true);
    if (line.perMaxByte > 0)
      maxBytes[indexOf(direction)] = largestOf(direction, false);
  }
  takeNorms();
}
