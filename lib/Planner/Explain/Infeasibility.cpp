//===- Infeasibility.cpp - Reasons for a problem without a plan -----------===//

#include "Infeasibility.h"

#include "HostLimits.h"
#include "InitialUnits/InitialUnits.h"
#include "LocalSearch/RandomRestarts.h"
#include "PublishedCaps.h"
#include "Units/MemoryLowerBound.h"

#include <algorithm>
#include <map>

using namespace neuroshard;

namespace {

constexpr size_t kMaxDetails = 5;

/// "128 devices x 192 GiB = 24,576 GiB", or the sum alone when they differ.
std::string capacityText(const SearchContext &context,
                         const std::vector<int> &devices) {
  int64_t total = 0;
  bool equal = true;
  for (int device : devices) {
    total += context.memoryOf(device);
    equal =
        equal && context.memoryOf(device) == context.memoryOf(devices.front());
  }
  std::string text = std::to_string(devices.size()) + " devices ";
  if (equal)
    return text + "x " + formatBytes(context.memoryOf(devices.front())) +
           " = " + formatBytes(total);
  return text + "with " + formatBytes(total) + " in all";
}

std::string unitName(const Unit &unit) {
  std::string text = "table '" + unit.shards.front().table + "'";
  if (unit.shards.size() > 1)
    text += " and the " + std::to_string(unit.shards.size() - 1) +
            " co-located with it";
  return text;
}

std::vector<std::string> largestUnits(const std::vector<UnitPtr> &units) {
  std::vector<UnitPtr> sorted = units;
  size_t count = std::min(kMaxDetails, sorted.size());
  std::partial_sort(sorted.begin(),
                    sorted.begin() + static_cast<std::ptrdiff_t>(count),
                    sorted.end(), [](const UnitPtr &a, const UnitPtr &b) {
                      return a->peakBytes() > b->peakBytes();
                    });
  std::vector<std::string> details;
  for (size_t i = 0; i < count; ++i)
    details.push_back(unitName(*sorted[i]) + " needs " +
                      formatBytes(sorted[i]->peakBytes()) + " (weights " +
                      formatBytes(sorted[i]->memory.weightsBytes) +
                      ", optimizer state " +
                      formatBytes(sorted[i]->memory.optimizerStateBytes) + ")");
  return details;
}

/// The largest unit that fits on no empty device, or null.
const Unit *largerThanAnyDevice(const SearchContext &context,
                                const std::vector<UnitPtr> &units) {
  int64_t room = 0;
  for (int device = 0; device < context.deviceCount; ++device)
    room = std::max(room, context.memoryOf(device) -
                              context.baseOf(device).peakBytes());
  const Unit *largest = nullptr;
  for (const UnitPtr &unit : units)
    if (context.peakOf(unit->footprint) > room &&
        (!largest || unit->peakBytes() > largest->peakBytes()))
      largest = unit.get();
  return largest;
}

std::string memoryAdvice(int64_t needBytes, int64_t perDeviceBytes) {
  std::string devices =
      perDeviceBytes > 0 ? "at least " +
                               std::to_string((needBytes + perDeviceBytes - 1) /
                                              perDeviceBytes) +
                               " such devices"
                         : "devices with more memory";
  return "use " + devices +
         ", an optimizer with less state (rowwise_adagrad keeps 4 bytes per "
         "row), f16 weights, or smaller reserves where they are not needed";
}

class Limits {
public:
  Limits(const SearchContext &context, const std::vector<UnitPtr> &units)
      : context(context), units(units) {}

  std::optional<PlanningError> checkBase() const;
  std::optional<PlanningError> checkPlaces() const;
  std::optional<PlanningError> checkSeparate() const;
  std::optional<PlanningError> checkTotal() const;
  std::optional<PlanningError> checkPinned() const;
  std::optional<PlanningError> checkForced() const;
  std::optional<PlanningError> checkUncuttable() const;

private:
  std::vector<int> allDevices() const {
    std::vector<int> devices;
    for (int device = 0; device < context.deviceCount; ++device)
      devices.push_back(device);
    return devices;
  }
  std::optional<PlanningError>
  checkSubset(const std::vector<int> &devices,
              const std::vector<const Unit *> &inside,
              const std::string &what) const;

  const SearchContext &context;
  const std::vector<UnitPtr> &units;
};

/// Devices without room for the fixed terms: ids, results, reserves.
std::optional<PlanningError> Limits::checkBase() const {
  for (int device = 0; device < context.deviceCount; ++device) {
    const MemoryTerms &base = context.baseOf(device);
    if (base.peakBytes() <= context.memoryOf(device))
      continue;
    return PlanningError{
        Limit::DeviceMemory,
        "device " + std::to_string(device) + " needs " +
            formatBytes(base.peakBytes()) +
            " before any table: ids of its part of the batch " +
            formatBytes(base.idsBytes) + ", results and gradients " +
            formatBytes(std::max(base.forwardBytes, base.backwardBytes)) +
            ", reserves " +
            formatBytes(base.communicatorBytes + base.denseReserveBytes +
                        base.fragmentationReserveBytes) +
            "; it has " + formatBytes(context.memoryOf(device)),
        {},
        "lower the batch or the reserves"};
  }
  return std::nullopt;
}

std::optional<PlanningError> Limits::checkPlaces() const {
  for (const UnitPtr &unit : units) {
    if (unit->forcedDevice == Unit::kEverywhere)
      continue;
    bool somewhere = false;
    for (int device = 0; device < context.deviceCount && !somewhere; ++device)
      somewhere =
          std::all_of(unit->tables.begin(), unit->tables.end(), [&](int table) {
            bool here = unit->forcedDevice < 0 || unit->forcedDevice == device;
            return here && context.rulesOf(table).allowsDevice(device);
          });
    if (!somewhere)
      return PlanningError{
          Limit::Constraint,
          unitName(*unit) +
              (unit->forcedDevice >= 0
                   ? " must be on device " +
                         std::to_string(unit->forcedDevice) +
                         ", which its pins and forbids exclude"
                   : " has no device left: pins and forbids exclude all " +
                         std::to_string(context.deviceCount)),
          {},
          "relax a pin, a forbid or the co-location"};
  }
  return std::nullopt;
}

std::optional<PlanningError> Limits::checkSeparate() const {
  for (const std::vector<int> &set : context.problem.constraints.separate) {
    if (set.size() <= static_cast<size_t>(context.deviceCount))
      continue;
    std::string names;
    for (size_t i = 0; i < set.size() && i < kMaxDetails; ++i)
      names += (i ? ", '" : "'") + context.table(set[i]).name + "'";
    return PlanningError{Limit::Constraint,
                         std::to_string(set.size()) +
                             " tables are to be separated from each other (" +
                             names + "), there are " +
                             std::to_string(context.deviceCount) + " devices",
                         {},
                         "separate fewer tables or use more devices"};
  }
  return std::nullopt;
}

std::optional<PlanningError>
Limits::checkSubset(const std::vector<int> &devices,
                    const std::vector<const Unit *> &inside,
                    const std::string &what) const {
  MemoryTerms tables, base;
  Footprint held;
  int64_t capacity = 0;
  for (const Unit *unit : inside) {
    held += unit->footprint;
    // Count only the replicas on these devices.
    bool everywhere = unit->forcedDevice == Unit::kEverywhere;
    tables += everywhere
                  ? scaled(unit->memory, static_cast<int64_t>(devices.size()))
                  : leastOf(context, *unit);
  }
  for (int device : devices) {
    base += context.baseOf(device);
    capacity += context.memoryOf(device);
  }
  // All row caches may be on one device.
  tables.weightsBytes += context.sharedBytesOf(held).device;
  int64_t stored = tables.weightsBytes + tables.optimizerStateBytes;
  MemoryTerms all = tables;
  all += base;
  if (all.peakBytes() <= capacity)
    return std::nullopt;
  std::string message = what + " need " + formatBytes(stored) + " (" +
                        formatBytes(tables.weightsBytes) + " weights + " +
                        formatBytes(tables.optimizerStateBytes) +
                        " optimizer state)";
  if (stored <= capacity)
    message +=
        ", with ids, activations and temporaries " +
        formatBytes(tables.peakBytes()) + ", and what every device holds " +
        "(reserves, its part of the batch) " + formatBytes(base.peakBytes()) +
        ": " + formatBytes(all.peakBytes()) + " in all";
  message += "; available: " + capacityText(context, devices);
  int64_t each = capacity / static_cast<int64_t>(devices.size());
  int64_t baseEach = base.peakBytes() / static_cast<int64_t>(devices.size());
  return PlanningError{Limit::DeviceMemory, message, largestUnits(units),
                       memoryAdvice(tables.peakBytes(), each - baseEach)};
}

std::optional<PlanningError> Limits::checkTotal() const {
  std::vector<const Unit *> all;
  for (const UnitPtr &unit : units)
    all.push_back(unit.get());
  return checkSubset(allDevices(), all,
                     "the " + std::to_string(context.problem.tables.size()) +
                         " tables");
}

/// Tables restricted to the same few devices (or fewer of them).
std::optional<PlanningError> Limits::checkPinned() const {
  std::map<std::vector<int>, std::vector<const Unit *>> byPlaces;
  for (const UnitPtr &unit : units) {
    if (unit->forcedDevice != -1)
      continue;
    std::vector<int> places;
    for (int device = 0; device < context.deviceCount; ++device)
      if (allowsDevice(context, *unit, device))
        places.push_back(device);
    byPlaces[places].push_back(unit.get());
  }
  for (const auto &[places, own] : byPlaces) {
    if (static_cast<int>(places.size()) == context.deviceCount)
      continue;
    std::vector<const Unit *> inside;
    for (const auto &[others, list] : byPlaces)
      if (std::includes(places.begin(), places.end(), others.begin(),
                        others.end()))
        inside.insert(inside.end(), list.begin(), list.end());
    for (const UnitPtr &unit : units)
      if (unit->writtenByHand &&
          (unit->forcedDevice == Unit::kEverywhere ||
           std::binary_search(places.begin(), places.end(),
                              unit->forcedDevice)))
        inside.push_back(unit.get());
    std::string names;
    for (size_t i = 0; i < own.size() && i < kMaxDetails; ++i)
      names += (i ? ", '" : "'") + own[i]->shards.front().table + "'";
    std::string list;
    for (size_t i = 0; i < places.size() && i < 2 * kMaxDetails; ++i)
      list += (i ? ", " : "") + std::to_string(places[i]);
    if (auto error = checkSubset(places, inside,
                                 "the tables restricted to devices " + list +
                                     " (" + names + ")")) {
      error->limit = Limit::Constraint;
      error->advice = "pin them to more devices, or " + error->advice;
      return error;
    }
  }
  return std::nullopt;
}

/// Devices without room for the units that have no choice.
std::optional<PlanningError> Limits::checkForced() const {
  std::vector<UnitPtr> forced;
  for (const UnitPtr &unit : units)
    if (unit->forcedDevice != -1 && !hasOtherForms(context, *unit))
      forced.push_back(unit);
  SearchState state(context, forced);
  for (int device = 0; device < context.deviceCount; ++device)
    if (state.freeBytes(device) < 0)
      return PlanningError{
          Limit::DeviceMemory,
          "shards that can only be on device " + std::to_string(device) +
              " (written by hand, row blocks, replicas), its part of the batch "
              "and its reserves need " +
              formatBytes(state.usedBytes(device)) + "; it has " +
              formatBytes(context.memoryOf(device)),
          largestUnits(forced),
          "move or cut shards written by hand, or allow more kinds"};
  return std::nullopt;
}

/// Units that may not be cut and fit on no device that may hold them.
std::optional<PlanningError> Limits::checkUncuttable() const {
  for (const UnitPtr &unit : units) {
    if (unit->forcedDevice != -1 || canCut(context, *unit) ||
        hasOtherForms(context, *unit))
      continue;
    if (unit->tables.size() == 1 &&
        !rowBlockGroups(context, unit->tables.front()).empty())
      continue;
    int64_t most = 0;
    int where = -1;
    bool fits = false;
    for (int device = 0; device < context.deviceCount && !fits; ++device) {
      if (!allowsDevice(context, *unit, device))
        continue;
      Footprint all = footprintOf(context.baseOf(device));
      int64_t room = context.memoryOf(device) - all.peakBytes();
      all += unit->footprint;
      fits = context.peakOf(all) <= context.memoryOf(device);
      if (where < 0 || room > most) {
        most = room;
        where = device;
      }
    }
    if (!fits)
      return PlanningError{
          Limit::DeviceMemory,
          unitName(*unit) + " needs " +
              formatBytes(context.peakOf(unit->footprint)) +
              " and its constraints allow no cut; the roomiest device it may "
              "be on, device " +
              std::to_string(where) + ", has " + formatBytes(most) +
              " left after reserves and its part of the batch",
          {},
          "allow column_wise or row_wise for it, lower its min_width, or pin "
          "it to a larger device"};
  }
  return std::nullopt;
}

/// Does the default search find no plan even with unlimited memory?
bool rulesAloneForbid(const SearchContext &context) {
  constexpr int64_t kPlenty = int64_t{1} << 50;
  ShardingProblem roomy = context.problem;
  for (Device &device : roomy.topology.devices)
    device.memoryBytes = kPlenty;
  for (Host &host : roomy.topology.hosts)
    host = {kPlenty, {}};
  SearchContext plenty(roomy, context.model, context.options);
  auto units = initialUnits(plenty);
  if (!units)
    return true;
  SearchOutcome outcome;
  restartRandomly(plenty, *units, outcome);
  return !outcome.state;
}

/// Has the problem no constraints, so that only the target's rules are left?
bool hasRules(const Constraints &constraints) {
  return !constraints.pins.empty() || !constraints.forbids.empty() ||
         !constraints.coLocate.empty() || !constraints.separate.empty() ||
         !constraints.tables.empty() || !constraints.fixedShards.empty();
}

PlanningError diagnoseRules(const SearchContext &context,
                            const Unit *blocking) {
  PlanningError error;
  error.limit =
      hasRules(context.problem.constraints) ? Limit::Constraint : Limit::Target;
  error.message = "algorithm 'default' found no placement that follows "
                  "every rule, whatever the memory";
  if (blocking)
    error.message += "; a piece of " + unitName(*blocking) +
                     " fits on no device that may hold it";
  error.advice = "relax pins, separations, co-locations or allowed kinds, "
                 "or use target native";
  return error;
}

} // namespace

std::optional<PlanningError>
neuroshard::findImpossible(const SearchContext &context,
                           const std::vector<UnitPtr> &units) {
  Limits limits(context, units);
  if (auto found = limits.checkPlaces())
    return found;
  if (auto found = limits.checkSeparate())
    return found;
  if (auto found = limits.checkTotal())
    return found;
  if (auto found = limits.checkBase())
    return found;
  if (auto found = checkHosts(context, units))
    return found;
  if (auto found = limits.checkForced())
    return found;
  if (auto found = limits.checkPinned())
    return found;
  return limits.checkUncuttable();
}

PlanningError neuroshard::diagnoseFailure(const SearchContext &context,
                                          const std::vector<UnitPtr> &units,
                                          const Unit *blocking) {
  bool isDefault = context.options.algorithm == Algorithm::Default;
  bool rules = hasRules(context.problem.constraints) ||
               context.problem.target != Target::Native;
  if (isDefault && rules && rulesAloneForbid(context))
    return diagnoseRules(context, blocking);
  if (std::optional<PlanningError> error = diagnoseCaps(context, units))
    return *error;
  MemoryTerms total;
  int64_t capacity = 0;
  for (const UnitPtr &unit : units)
    total += scaled(unit->memory, copiesOf(context, *unit));
  for (int device = 0; device < context.deviceCount; ++device) {
    total += context.baseOf(device);
    capacity += context.memoryOf(device);
  }
  if (!blocking)
    blocking = largerThanAnyDevice(context, units);
  std::string algorithm(toString(context.options.algorithm));
  PlanningError error;
  error.limit = isDefault ? Limit::DeviceMemory : Limit::Algorithm;
  error.message = "algorithm '" + algorithm +
                  "' found no placement: " + formatBytes(total.peakBytes()) +
                  " of " + formatBytes(capacity) + " are needed";
  if (blocking)
    error.message += "; a piece of " + unitName(*blocking) + " (" +
                     formatBytes(blocking->peakBytes()) +
                     ") fits on no device that may hold it";
  error.details = largestUnits(units);
  error.advice =
      error.limit == Limit::Algorithm
          ? "algorithm 'default' also cuts tables by rows and lifts the caps; "
            "or give more memory"
          : "give more memory or devices, smaller reserves, or fewer "
            "constraints";
  return error;
}

PlanningError neuroshard::diagnoseBadInput(const Diagnostics &errors) {
  PlanningError error;
  error.limit = Limit::BadInput;
  error.message = errors.front().str();
  for (size_t i = 1; i < errors.size(); ++i)
    error.details.push_back(errors[i].str());
  return error;
}

std::string PlanningError::str() const {
  std::string text = std::string(toString(limit)) + ": " + message;
  for (const std::string &detail : details)
    text += "\n  " + detail;
  if (!advice.empty())
    text += "\n  advice: " + advice;
  return text;
}
