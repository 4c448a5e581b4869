//===- CostNetworks.cpp - Costs learnt from measured plans ----------------===//

#include "CostNetworks.h"

#include "Layers/Standardise.h"
#include "PlacementEpisodes.h"

#include "neuroshard/CostModel/ModelLibrary.h"
#include "neuroshard/CostModel/Roofline.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

constexpr int64_t kBatch = 64;
constexpr size_t kValidationEvery = 8;
/// Of the one time of a model that does not separate backward. Networks predict
/// logarithms, so it is not 0.
constexpr double kBackwardShare = 1e-3;

/// For the last starter, per device.
std::vector<double> waitsOf(std::span<const double> startSkewsMs) {
  std::vector<double> waits(startSkewsMs.begin(), startSkewsMs.end());
  double last = 0;
  for (double skew : startSkewsMs)
    last = std::max(last, skew);
  for (double &wait : waits)
    wait = last - wait;
  return waits;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// Another cost model, of whose exchanges it takes notes.
class NotingModel final : public CostModel {
public:
  NotingModel(const CostModel &inner, PlanTimes &notes)
      : inner(inner), notes(notes) {}

  /// From now on.
  void takeNotes() { noting = true; }

  std::string name() const override { return inner.name(); }
  bool separatesBackward() const override { return inner.separatesBackward(); }
  double fixedStepMs() const override { return inner.fixedStepMs(); }
  const SumEmbedding *sumEmbedding() const override {
    return inner.sumEmbedding();
  }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    inner.computeMs(sets, out);
  }
  std::vector<double> arrivalsMs(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 double evenMs,
                                 Direction direction) const override {
    return inner.arrivalsMs(traffic, startsMs, evenMs, direction);
  }
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override {
    std::vector<double> times =
        inner.communicationMs(traffic, startSkewsMs, direction);
    if (noting && times.size() > 1)
      note(traffic, startSkewsMs, direction, times);
    return times;
  }

private:
  void note(const Traffic &traffic, std::span<const double> startSkewsMs,
            Direction direction, std::span<const double> times) const {
    std::vector<double> even = inner.communicationMs(traffic, {}, direction);
    bool positive = std::all_of(even.begin(), even.end(), [](double ms) {
      return ms > 0 && std::isfinite(ms);
    });
    if (!positive)
      return;
    featurizeDevices(traffic, direction, notes.exchanges.features);
    for (double ms : even)
      notes.exchanges.logMs.push_back(static_cast<float>(std::log(ms)));
    std::vector<double> waits = waitsOf(startSkewsMs);
    for (size_t d = 0; d < waits.size(); ++d) {
      notes.waited += waits[d] * (times[d] - even[d]);
      notes.waits += waits[d] * waits[d];
    }
  }

  const CostModel &inner;
  PlanTimes &notes;
  bool noting = false;
};

/// Adds the devices that hold shards.
void addSets(const std::vector<ShardSet> &sets, const CostModel &model,
             SetData &data) {
  data.featureCount = kFeatureCount;
  std::vector<ComputeMs> times(sets.size());
  model.computeMs(sets, times);
  for (size_t device = 0; device < sets.size(); ++device) {
    if (!(times[device].total() > 0))
      continue;
    for (const ShardWork *shard : sets[device].shards) {
      size_t end = data.features.size();
      data.features.resize(end + kFeatureCount);
      featurize(*shard, std::span(data.features).subspan(end));
    }
    data.firstShard.push_back(static_cast<int64_t>(data.features.size()) /
                              kFeatureCount);
    ComputeMs time = times[device];
    if (!model.separatesBackward())
      time.backwardMs = kBackwardShare * time.forwardMs;
    data.times.push_back(time);
  }
}

//===----------------------------------------------------------------------===//
// Predicting
//===----------------------------------------------------------------------===//

/// What the networks of one hardware predict with.
struct LearntCosts {
  std::shared_ptr<const CostModel> compute;
  DenseStack exchange;
  FeatureScale exchangeScale;
  /// The share of the wait for the last starter by which an exchange takes
  /// longer.
  double waitShare = 1;
};

class LearntModel final : public CostModel {
public:
  explicit LearntModel(LearntCosts costs) : costs(std::move(costs)) {}

  std::string name() const override { return "cost network"; }
  const SumEmbedding *sumEmbedding() const override {
    return costs.compute->sumEmbedding();
  }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    costs.compute->computeMs(sets, out);
  }
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override;

private:
  const LearntCosts costs;
};

std::vector<double>
LearntModel::communicationMs(const Traffic &traffic,
                             std::span<const double> startSkewsMs,
                             Direction direction) const {
  std::vector<double> times(traffic.dims.size());
  if (times.size() < 2 || costs.exchange.empty())
    return times;
  std::vector<float> rows;
  featurizeDevices(traffic, direction, rows);
  standardise(rows, costs.exchangeScale, kRangeMargin);
  std::vector<double> waits = waitsOf(startSkewsMs);
  waits.resize(times.size());
  for (size_t d = 0; d < times.size(); ++d)
    times[d] = costs.waitShare * waits[d] +
               predictExchange(costs.exchange,
                               std::span(rows).subspan(d * kExchangeRowSize,
                                                       kExchangeRowSize));
  return times;
}

//===----------------------------------------------------------------------===//
// Training data
//===----------------------------------------------------------------------===//

template <typename Values>
void append(std::vector<Values> &to, const std::vector<Values> &from) {
  to.insert(to.end(), from.begin(), from.end());
}

void appendFirsts(std::vector<int64_t> &to, const std::vector<int64_t> &from) {
  int64_t end = to.back();
  for (size_t i = 1; i < from.size(); ++i)
    to.push_back(end + from[i]);
}

void append(SetData &to, const SetData &from) {
  to.featureCount = from.featureCount;
  append(to.features, from.features);
  appendFirsts(to.firstShard, from.firstShard);
  append(to.times, from.times);
}

void append(ExchangeRows &to, const ExchangeRows &from) {
  append(to.features, from.features);
  append(to.logMs, from.logMs);
}

ExchangeRows standardised(ExchangeRows rows, const FeatureScale &scale) {
  standardise(rows.features, scale, kRangeMargin);
  return rows;
}

/// Samples for training, and for choosing among the weights.
template <typename Data> struct Parts {
  Data training, validation;

  /// With few plans the choice is among the training samples.
  const Data &chosenBy() const {
    return validation.size() > 0 ? validation : training;
  }
};

FitOptions optionsFor(const CostNetworkFit &fit, size_t samples,
                      uint64_t seed) {
  int64_t batches = (static_cast<int64_t>(samples) + kBatch - 1) / kBatch;
  FitOptions options;
  options.batch = kBatch;
  options.epochs = (fit.steps + batches - 1) / batches;
  options.learningRate = fit.learningRate;
  options.seed = seed;
  return options;
}

} // namespace

std::string neuroshard::hardwareOf(const PlacementExample &example) {
  return example.model->name() + " on " +
         example.problem.topology.devices[0].deviceClass;
}

PlanTimes neuroshard::measurePlan(const PlacementExample &example,
                                  std::span<const int> devices) {
  PlanTimes plan;
  plan.hardware = hardwareOf(example);
  plan.deviceClass = example.problem.topology.devices[0].deviceClass;
  NotingModel model(*example.model, plan);
  auto mdp = PlacementMdp::make(example.problem, model, example.objective);
  PlacementTask task = mdp->task();
  std::vector<ShardSet> sets(static_cast<size_t>(task.deviceCount));
  for (size_t d = 0; d < sets.size(); ++d)
    sets[d].deviceClass =
        findDeviceClass(example.problem.topology,
                        example.problem.topology.devices[d].deviceClass);
  auto add = [&](size_t piece, int device) {
    append(sets[static_cast<size_t>(device)].shards, task.pieces[piece].works);
  };
  for (auto [piece, device] : mdp->given())
    add(piece, device);
  while (std::optional<size_t> piece = mdp->next()) {
    add(*piece, devices[*piece]);
    mdp->place(devices[*piece]);
  }
  model.takeNotes();
  plan.costMs = mdp->costMs();
  addSets(sets, *example.model, plan.sets);
  return plan;
}

struct CostNetworks::Hardware {
  std::string deviceClass;
  uint64_t seed = 0;
  size_t plans = 0;
  int fits = 0;
  Parts<SetData> sets;
  Parts<ExchangeRows> exchanges;
  ComputeNetwork compute;
  /// See PlanTimes.
  double waited = 0, waits = 0;
  LearntCosts learnt;
};

CostNetworks::CostNetworks(FeatureScale tables, uint64_t seed)
    : tables(std::move(tables)), seed(seed) {}

CostNetworks::~CostNetworks() = default;

CostNetworks::Hardware &CostNetworks::hardwareOf(const PlanTimes &plan) {
  auto [found, isNew] = known.try_emplace(plan.hardware);
  if (isNew) {
    found->second.deviceClass = plan.deviceClass;
    found->second.seed = seed + 101 * known.size();
  }
  return found->second;
}

void CostNetworks::add(const PlanTimes &plan) {
  Hardware &hardware = hardwareOf(plan);
  bool validation = ++hardware.plans % kValidationEvery == 0;
  SetData sets = plan.sets;
  standardise(sets.features, tables, kRangeMargin);
  append(validation ? hardware.sets.validation : hardware.sets.training, sets);
  append(validation ? hardware.exchanges.validation
                    : hardware.exchanges.training,
         plan.exchanges);
  hardware.waited += plan.waited;
  hardware.waits += plan.waits;
}

void CostNetworks::fitCompute(Hardware &hardware,
                              const CostNetworkFit &options) const {
  const Parts<SetData> &sets = hardware.sets;
  if (sets.training.size() == 0)
    return;
  if (hardware.compute.table.empty()) {
    hardware.compute = newComputeNetwork(hardware.seed);
    centerComputeNetwork(hardware.compute, sets.training);
  }
  fitComputeNetwork(
      hardware.compute, sets.training, sets.chosenBy(),
      optionsFor(options, sets.training.size(),
                 hardware.seed + 2 + static_cast<uint64_t>(hardware.fits)));
  NeuralComputeParameters parameters;
  parameters.features = tables;
  parameters.members = {memberOf(hardware.compute)};
  parameters.deviceClass = hardware.deviceClass;
  ModelParts parts;
  parts.compute = {{"", std::make_shared<NeuralCompute>(parameters)}};
  hardware.learnt.compute = composeModel(std::move(parts));
}

void CostNetworks::fitExchange(Hardware &hardware,
                               const CostNetworkFit &options) const {
  const Parts<ExchangeRows> &exchanges = hardware.exchanges;
  LearntCosts &learnt = hardware.learnt;
  if (hardware.waits > 0)
    learnt.waitShare = hardware.waited / hardware.waits;
  if (exchanges.training.size() == 0)
    return;
  if (learnt.exchange.empty()) {
    learnt.exchange = newExchangeNetwork(hardware.seed + 1);
    // The scale of the first fit.
    learnt.exchangeScale =
        scaleOf(exchanges.training.features, kExchangeRowSize);
  }
  FitOptions fit =
      optionsFor(options, exchanges.training.size(),
                 hardware.seed + 3 + static_cast<uint64_t>(hardware.fits));
  fitExchangeNetwork(
      learnt.exchange, standardised(exchanges.training, learnt.exchangeScale),
      standardised(exchanges.chosenBy(), learnt.exchangeScale), fit);
}

void CostNetworks::fit(const CostNetworkFit &options) {
  std::vector<Hardware *> all;
  for (auto &[name, hardware] : known)
    all.push_back(&hardware);
  inParallel(options.threads, 2 * all.size(), [&](size_t job) {
    Hardware &hardware = *all[job / 2];
    if (job % 2 == 0)
      fitCompute(hardware, options);
    else
      fitExchange(hardware, options);
  });
  for (Hardware *hardware : all)
    ++hardware->fits;
}

std::unique_ptr<CostModel>
CostNetworks::modelFor(const std::string &hardware) const {
  auto found = known.find(hardware);
  if (found == known.end() || !found->second.learnt.compute)
    return makeRooflineModel();
  return std::make_unique<LearntModel>(found->second.learnt);
}
