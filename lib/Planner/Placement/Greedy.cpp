//===- Greedy.cpp - Greedy placement under caps on dims -------------------===//

#include "Greedy.h"

#include "Placement.h"
#include "Units/SearchThreads.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace neuroshard;

namespace {

/// The placement of one job under the caps [firstCap, lastCap], which have led
/// to the same choices so far.
struct Run {
  size_t job = 0;
  size_t firstCap = 0, lastCap = 0;
  DeviceTotals totals;
  /// contentsKey() of each device, where compute is cached.
  std::vector<uint64_t> keys;
  /// Device of each entry of GreedyJob::order that is placed.
  std::vector<int> devices;
  /// All devices by compute, then memory, if all are of one class. A device
  /// leaves it with a new unit and comes back when that is priced.
  std::set<std::tuple<double, int64_t, int>> byCompute;

  std::tuple<double, int64_t, int> rankOf(int device) const {
    return {totals.in(kSummary).loadOf(device).compute.total(),
            totals.memoryOf(device).peakBytes(), device};
  }
};

/// Facts that all runs of a job share.
struct JobFacts {
  /// Caps on a device's dims, in dims.
  std::vector<double> dimCaps;
  /// Bytes that joining columns takes on every device.
  int64_t permuteBytes = 0;
};

/// Places several jobs together, one unit of each per model call.
class LockStep {
public:
  LockStep(const SearchContext &context, std::span<const double> caps,
           std::span<GreedyJob *const> jobs)
      : context(context), jobs(jobs), batch(context),
        uniform(context.usedClasses.size() == 1),
        sums(context.model.sumEmbedding() != nullptr) {
    runs.reserve(jobs.size() * caps.size());
    for (size_t i = 0; i < jobs.size(); ++i)
      begin(i, caps);
  }

  void run();

private:
  void begin(size_t job, std::span<const double> caps);
  bool step(size_t position);
  void evaluateAll(size_t position);
  void chooseFor(size_t run, size_t position);
  int choose(const Run &run, const Unit &unit, double dimsCap) const;
  int chooseOfOneClass(const Run &run, const Unit &unit, double dimsCap) const;
  int chooseOfAny(const Run &run, const Unit &unit, double dimsCap) const;
  bool isElsewhere(const Run &run, int device, const Unit &unit) const;
  bool keepsCap(const Run &run, int device, const Unit &unit,
                double dimsCap) const;
  bool allows(const Run &run, int device, const Unit &unit) const;
  bool fits(const Run &run, int device, const Unit &unit) const;
  void place(Run &run, int device, const UnitPtr &unit);
  void evaluatePlaced(size_t position);
  size_t request(const Run &run, int device, const Unit *added);
  void finish();

  /// As evaluateAll() found it.
  const ComputeMs &computeAfter(const Run &run, int device) const {
    size_t first = static_cast<size_t>(&run - runs.data()) *
                   static_cast<size_t>(context.deviceCount);
    return batch[afterIndex[first + static_cast<size_t>(device)]];
  }
  const Unit &unitAt(const Run &run, size_t position) const {
    const GreedyJob &job = *jobs[run.job];
    return *job.units[job.order[position]];
  }

  const SearchContext &context;
  std::span<GreedyJob *const> jobs;
  std::vector<JobFacts> facts;
  std::vector<Run> runs;
  ComputeBatch batch;
  /// Are all devices of one class?
  const bool uniform;
  /// Does the model price a sum of embeddings?
  const bool sums;
  /// With several device classes: compute after adding, run x device.
  std::vector<size_t> afterIndex;
};

/// Starts a job: places the units without a choice and works out its caps.
void LockStep::begin(size_t index, std::span<const double> caps) {
  const GreedyJob &job = *jobs[index];
  SearchState state(context, job.units);
  JobFacts &fact = facts.emplace_back();
  fact.permuteBytes = state.permuteBytes();
  double dims = 0;
  for (const UnitPtr &unit : job.units)
    dims += unit->load.dims;
  for (double cap : caps)
    fact.dimCaps.push_back(cap == kNoCap ? kNoCap
                                         : cap * (dims / context.deviceCount));
  Run run{.job = index,
          .lastCap = caps.size() - 1,
          .totals = state.totals(),
          .keys = {},
          .devices = {},
          .byCompute = {}};
  for (int device = 0; batch.worthCaching() && device < context.deviceCount;
       ++device) {
    uint64_t &key = run.keys.emplace_back(context.classIndexOf(device) + 1);
    for (size_t unit : state.unitsOn(device))
      key = contentsKey(key, *job.units[unit]);
  }
  run.devices.reserve(job.order.size());
  for (int device = 0; uniform && device < context.deviceCount; ++device)
    run.byCompute.insert(run.rankOf(device));
  runs.push_back(std::move(run));
}

/// Do pins, forbids and separation allow the unit on the device?
bool LockStep::allows(const Run &run, int device, const Unit &unit) const {
  return !unit.restricted || (allowsDevice(context, unit, device) &&
                              run.totals.separation().admits(device, unit));
}

bool LockStep::fits(const Run &run, int device, const Unit &unit) const {
  Footprint used = run.totals.memoryOf(device);
  used += unit.footprint;
  return context.peakOf(used) + facts[run.job].permuteBytes <=
             context.memoryOf(device) &&
         run.totals.hostHolds(device, unit.footprint);
}

bool LockStep::keepsCap(const Run &run, int device, const Unit &unit,
                        double dimsCap) const {
  return run.totals.in(kSummary).loadOf(device).dims + unit.load.dims <=
         dimsCap;
}

/// Is the unit of a separated table that the device does not hold?
bool LockStep::isElsewhere(const Run &run, int device, const Unit &unit) const {
  return unit.restricted && isSeparated(context, unit) &&
         !run.totals.separation().holds(device, unit);
}

/// The device for a unit, or -1: the one that computes least. A separated table
/// stays on its devices while they have room, which leaves others to the tables
/// it is separated from.
int LockStep::choose(const Run &run, const Unit &unit, double dimsCap) const {
  return uniform ? chooseOfOneClass(run, unit, dimsCap)
                 : chooseOfAny(run, unit, dimsCap);
}

/// The first in order that has room; with thousands of devices that is soon
/// found.
int LockStep::chooseOfOneClass(const Run &run, const Unit &unit,
                               double dimsCap) const {
  int other = -1;
  for (const auto &[compute, bytes, device] : run.byCompute) {
    bool elsewhere = isElsewhere(run, device, unit);
    if ((elsewhere && other >= 0) || !keepsCap(run, device, unit, dimsCap) ||
        !fits(run, device, unit) || !allows(run, device, unit))
      continue;
    if (!elsewhere)
      return device;
    other = device;
  }
  return other;
}

int LockStep::chooseOfAny(const Run &run, const Unit &unit,
                          double dimsCap) const {
  int best = -1;
  std::tuple<bool, double, int64_t> bestKey;
  for (int device = 0; device < context.deviceCount; ++device) {
    if (!keepsCap(run, device, unit, dimsCap))
      continue;
    double compute = computeAfter(run, device).total();
    bool elsewhere = isElsewhere(run, device, unit);
    if (best >= 0 && std::tuple(elsewhere, compute) >
                         std::tuple(std::get<0>(bestKey), std::get<1>(bestKey)))
      continue;
    std::tuple<bool, double, int64_t> key(
        elsewhere, compute, run.totals.memoryOf(device).peakBytes());
    if ((best >= 0 && key >= bestKey) || !fits(run, device, unit) ||
        !allows(run, device, unit))
      continue;
    best = device;
    bestKey = key;
  }
  return best;
}

size_t LockStep::request(const Run &run, int device, const Unit *added) {
  size_t classIndex = context.classIndexOf(device);
  uint64_t key = 0;
  if (batch.worthCaching()) {
    key = run.keys[static_cast<size_t>(device)];
    if (added)
      key = contentsKey(key, *added);
  }
  int shards = run.totals.shardsOn(device) + (added ? added->shardCount() : 0);
  if (sums)
    return batch.add(run.totals.in(kSummary).embeddingOf(device), added, shards,
                     classIndex, key);
  const GreedyJob &job = *jobs[run.job];
  std::vector<const Unit *> units;
  for (const UnitPtr &unit : job.units)
    if (unit->forcedDevice == device || unit->forcedDevice == Unit::kEverywhere)
      units.push_back(unit.get());
  for (size_t i = 0; i < run.devices.size(); ++i)
    if (run.devices[i] == device)
      units.push_back(job.units[job.order[i]].get());
  if (added)
    units.push_back(added);
  return batch.add(units, classIndex, key);
}

void LockStep::place(Run &run, int device, const UnitPtr &unit) {
  if (batch.worthCaching()) {
    uint64_t &key = run.keys[static_cast<size_t>(device)];
    key = contentsKey(key, *unit);
  }
  if (uniform)
    run.byCompute.erase(run.rankOf(device));
  run.totals.add(device, *unit);
  run.devices.push_back(device);
}

/// Chooses for the largest cap; smaller caps that the choice exceeds go on as a
/// run of their own.
void LockStep::chooseFor(size_t index, size_t position) {
  const Unit &unit = unitAt(runs[index], position);
  const std::vector<double> &dimCaps = facts[runs[index].job].dimCaps;
  while (true) {
    Run &run = runs[index];
    int device = choose(run, unit, dimCaps[run.lastCap]);
    if (device < 0) {
      // Smaller caps leave even fewer devices.
      run.lastCap = 0;
      run.firstCap = 1;
      return;
    }
    double dims = run.totals.in(kSummary).loadOf(device).dims + unit.load.dims;
    size_t first = run.firstCap;
    while (!(dims <= dimCaps[first]))
      ++first;
    if (first > run.firstCap) {
      Run rest = run;
      rest.lastCap = first - 1;
      run.firstCap = first;
      size_t devices = static_cast<size_t>(context.deviceCount);
      place(run, device, jobs[run.job]->units[jobs[run.job]->order[position]]);
      runs.push_back(std::move(rest));
      if (!uniform)
        for (size_t d = 0; d < devices; ++d)
          afterIndex.push_back(afterIndex[index * devices + d]);
      index = runs.size() - 1;
      continue;
    }
    place(run, device, jobs[run.job]->units[jobs[run.job]->order[position]]);
    return;
  }
}

/// With several device classes the choice needs every device's compute.
void LockStep::evaluateAll(size_t position) {
  batch.clear();
  afterIndex.clear();
  for (const Run &run : runs)
    for (int device = 0; device < context.deviceCount; ++device)
      afterIndex.push_back(position < jobs[run.job]->order.size()
                               ? request(run, device, &unitAt(run, position))
                               : 0);
  batch.run();
}

void LockStep::evaluatePlaced(size_t position) {
  batch.clear();
  std::vector<std::pair<size_t, size_t>> requests;
  for (size_t i = 0; i < runs.size(); ++i)
    if (position < runs[i].devices.size())
      requests.emplace_back(i,
                            request(runs[i], runs[i].devices.back(), nullptr));
  batch.run();
  for (auto [run, result] : requests) {
    Run &placed = runs[run];
    int device = placed.devices.back();
    placed.totals.in(kSummary).setCompute(device, batch[result]);
    if (uniform)
      placed.byCompute.insert(placed.rankOf(device));
  }
}

bool LockStep::step(size_t position) {
  // After the deadline there is time for one placement only: without a cap it
  // is most likely to find room.
  if (context.deadlinePassed())
    std::erase_if(runs, [&](const Run &run) {
      return run.lastCap + 1 < facts[run.job].dimCaps.size();
    });
  if (!uniform)
    evaluateAll(position);
  bool any = false;
  for (size_t i = 0, count = runs.size(); i < count; ++i)
    if (position < jobs[runs[i].job]->order.size()) {
      chooseFor(i, position);
      any = true;
    }
  std::erase_if(runs,
                [](const Run &run) { return run.firstCap > run.lastCap; });
  evaluatePlaced(position);
  return any;
}

void LockStep::finish() {
  // Of equal costs that of the smallest cap wins, as if caps were tried in
  // order.
  std::stable_sort(runs.begin(), runs.end(), [](const Run &a, const Run &b) {
    return std::tie(a.job, a.firstCap) < std::tie(b.job, b.firstCap);
  });
  for (const Run &run : runs) {
    GreedyJob &job = *jobs[run.job];
    double cost =
        composeCost(context.problem.topology, run.totals.in(kSummary).loads(),
                    context.model, context.options.objective)
            .costMs;
    if (cost >= job.costMs)
      continue;
    job.costMs = cost;
    job.devices = run.devices;
  }
}

void LockStep::run() {
  for (size_t position = 0; step(position); ++position) {
  }
  finish();
}

} // namespace

GreedyPlacer::GreedyPlacer(const SearchContext &context,
                           std::vector<double> caps)
    : context(context), caps(std::move(caps)) {}

void GreedyPlacer::run(std::span<GreedyJob *const> jobs) const {
  for (GreedyJob *job : jobs)
    job->evaluations = static_cast<int64_t>(caps.size());
  // Jobs between two looks at the deadline.
  constexpr size_t kMaxJobs = 16;
  size_t threads = static_cast<size_t>(context.pool().threads());
  size_t size =
      std::clamp<size_t>((jobs.size() + threads - 1) / threads, 1, kMaxJobs);
  size_t chunks = (jobs.size() + size - 1) / size;
  context.pool().forEach(chunks, [&](size_t chunk) {
    if (context.deadlinePassed())
      return;
    size_t begin = chunk * size;
    LockStep(context, caps,
             jobs.subspan(begin, std::min(size, jobs.size() - begin)))
        .run();
  });
}

std::vector<double> neuroshard::gridCaps(const PublishedSettings &settings) {
  std::vector<double> caps;
  double range = settings.gridEnd - settings.gridBegin;
  for (int i = 0; i < settings.gridPoints; ++i)
    caps.push_back(
        settings.gridPoints > 1
            ? settings.gridBegin +
                  range * (static_cast<double>(i) / (settings.gridPoints - 1))
            : settings.gridBegin);
  return caps;
}

std::vector<size_t> neuroshard::orderByCost(const SearchContext &context,
                                            const std::vector<UnitPtr> &units) {
  std::vector<size_t> order;
  std::vector<std::pair<int, double>> ranks(units.size());
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i]->forcedDevice != -1)
      continue;
    ranks[i] = {freedomOf(context, *units[i]), -units[i]->aloneMs()};
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ranks[a] < ranks[b]; });
  return order;
}

SearchState neuroshard::stateOf(const SearchContext &context,
                                const GreedyJob &job) {
  SearchState state(context, job.units);
  for (size_t i = 0; i < job.devices.size(); ++i)
    state.place(job.order[i], job.devices[i]);
  return state;
}
