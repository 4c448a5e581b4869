//===- PlacementTraining.cpp - Trains policies by REINFORCE ---------------===//

#include "neuroshard/Training/PlacementTraining.h"
#include "neuroshard/Support/Random.h"
#include "neuroshard/Support/ShortestText.h"

#include "Layers/Standardise.h"
#include "PlacementEpisodes.h"
#include "PlacementTurns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

using namespace neuroshard;

namespace {

/// Random tasks that the features' scale is computed from.
constexpr int kScaleTasks = 64;
constexpr int kScaleEpisodes = 2;
/// Seeds of validation, scale and learning lie apart.
constexpr uint64_t kSeedsApart = uint64_t{1} << 32;
constexpr double kLastRate = 0.05;

std::optional<double> costOf(const PlacementExample &example,
                             Algorithm algorithm,
                             const PlacementPolicy *policy = nullptr) {
  SearchOptions options;
  options.algorithm = algorithm;
  options.objective = example.objective;
  options.policy = policy;
  options.threads = 1;
  auto result = search(example.problem, *example.model, options);
  if (!result)
    return std::nullopt;
  return result->breakdown.costMs;
}

/// The least cost of the greedy baselines; nothing if none finds a plan.
std::optional<double> bestBaseline(const PlacementExample &example) {
  std::optional<double> best;
  for (Algorithm algorithm : {Algorithm::Dim, Algorithm::Size,
                              Algorithm::Lookup, Algorithm::SizeLookup}) {
    std::optional<double> cost = costOf(example, algorithm);
    if (cost && (!best || *cost < *best))
      best = cost;
  }
  return best;
}

struct ValidationTask {
  PlacementExample example;
  double baselineMs;
};

class Trainer {
public:
  explicit Trainer(const PlacementTrainingOptions &options)
      : options(options) {}

  Expected<TrainedPlacement> run();

private:
  Expected<void> prepareScale();
  Expected<void> takeTurn(const PlacementPolicy *policy);
  Expected<void> prepareValidation();
  Expected<std::vector<EpisodeData>> play(int iteration);
  void validate(int iteration, double entropy);
  Expected<std::vector<PlacementExample>> draw(uint64_t seed, int count) const;
  void setStacks(PlacementStacks stacks);
  void standardiseData(EpisodeData &data) const;
  double rateAt(int iteration) const;

  const PlacementTrainingOptions &options;
  std::vector<ValidationTask> validation;
  std::optional<PlacementTurns> turns;
  PlacementPolicyParameters current;
  TrainedPlacement result;
  double bestRatio = INFINITY;
};

/// Tasks to learn from, with the costs to learn from.
Expected<std::vector<PlacementExample>> Trainer::draw(uint64_t seed,
                                                      int count) const {
  auto examples = randomPlacementExamples(options.tasks, seed, count);
  if (examples && turns)
    turns->estimate(*examples);
  return examples;
}

/// Results are kept by index, so that threads do not change their order. A
/// task without a choice (every piece fixed) is left out.
std::vector<RecordedEpisodes> recordAll(std::vector<PlacementExample> &examples,
                                        const PlacementPolicy *policy,
                                        int episodes, uint64_t seed,
                                        int threads) {
  std::vector<std::optional<RecordedEpisodes>> slots(examples.size());
  inParallel(threads, examples.size(), [&](size_t i) {
    auto mdp = PlacementMdp::make(examples[i].problem, *examples[i].model,
                                  examples[i].objective);
    if (mdp && !mdp->order().empty())
      slots[i] = recordEpisodes(*mdp, policy, episodes, seed + i);
  });
  std::vector<RecordedEpisodes> recorded;
  for (std::optional<RecordedEpisodes> &slot : slots)
    if (slot)
      recorded.push_back(std::move(*slot));
  return recorded;
}

std::vector<float> joined(const std::vector<RecordedEpisodes> &recorded,
                          std::vector<float> EpisodeData::*part) {
  std::vector<float> all;
  for (const RecordedEpisodes &each : recorded) {
    const std::vector<float> &values = each.data.*part;
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

Expected<void> Trainer::prepareScale() {
  uint64_t seed = options.seed * 2 * kSeedsApart;
  auto record = [&]() -> Expected<std::vector<RecordedEpisodes>> {
    auto examples = draw(seed, kScaleTasks);
    if (!examples)
      return tl::unexpected(examples.error());
    return recordAll(*examples, nullptr, kScaleEpisodes, seed, options.threads);
  };
  auto recorded = record();
  if (!recorded)
    return tl::unexpected(recorded.error());
  current.tableScale =
      scaleOf(joined(*recorded, &EpisodeData::tables), kFeatureCount);
  if (options.costNetwork.turns > 0) {
    turns.emplace(options.tasks, options.costNetwork, options.seed,
                  options.threads, current.tableScale);
    if (Expected<void> taken = takeTurn(nullptr); !taken)
      return taken;
    recorded = record();
    if (!recorded)
      return tl::unexpected(recorded.error());
  }
  current.deviceScale = scaleOf(joined(*recorded, &EpisodeData::features),
                                kPlacementFeatureCount);
  return {};
}

Expected<void> Trainer::takeTurn(const PlacementPolicy *policy) {
  Expected<PlacementTurn> turn = turns->take(policy);
  if (!turn)
    return tl::unexpected(turn.error());
  result.turns.push_back(*turn);
  if (options.turnProgress)
    options.turnProgress(*turn);
  return {};
}

Expected<void> Trainer::prepareValidation() {
  uint64_t seed = (options.seed * 2 + 1) * kSeedsApart;
  auto examples =
      randomPlacementExamples(options.tasks, seed, options.validationTasks);
  if (!examples)
    return tl::unexpected(examples.error());
  std::vector<std::optional<double>> baselines(examples->size());
  inParallel(options.threads, examples->size(),
             [&](size_t i) { baselines[i] = bestBaseline((*examples)[i]); });
  for (size_t i = 0; i < examples->size(); ++i)
    if (baselines[i])
      validation.push_back({std::move((*examples)[i]), *baselines[i]});
  if (validation.empty())
    return failure("validation",
                   "no baseline finds a plan for any validation task; lower "
                   "the fill or have more of them");
  return {};
}

void Trainer::setStacks(PlacementStacks stacks) {
  std::move(stacks.table.begin(), stacks.table.end(), current.table.begin());
  std::move(stacks.head.begin(), stacks.head.end(), current.head.begin());
}

void Trainer::standardiseData(EpisodeData &data) const {
  standardise(data.tables, current.tableScale, kRangeMargin);
  standardise(data.features, current.deviceScale, kRangeMargin);
}

Expected<std::vector<EpisodeData>> Trainer::play(int iteration) {
  uint64_t seed = options.seed * 2 * kSeedsApart + kScaleTasks +
                  static_cast<uint64_t>(iteration) *
                      static_cast<uint64_t>(options.tasksPerIteration);
  auto examples = draw(seed, options.tasksPerIteration);
  if (!examples)
    return tl::unexpected(examples.error());
  std::unique_ptr<PlacementPolicy> policy =
      makePlacementPolicy(current, "learning");
  std::vector<EpisodeData> data;
  for (RecordedEpisodes &recorded :
       recordAll(*examples, policy.get(), options.episodesPerTask, seed,
                 options.threads)) {
    judgeEpisodes(recorded);
    standardiseData(recorded.data);
    data.push_back(std::move(recorded.data));
  }
  return data;
}

void Trainer::validate(int iteration, double entropy) {
  std::unique_ptr<PlacementPolicy> policy =
      makePlacementPolicy(current, "learning");
  std::vector<double> ratios(validation.size());
  inParallel(options.threads, validation.size(), [&](size_t i) {
    std::optional<double> cost =
        costOf(validation[i].example, Algorithm::DreamShard, policy.get());
    ratios[i] = cost ? *cost / validation[i].baselineMs : 0;
  });
  PlacementCurvePoint point;
  point.iteration = iteration;
  point.episodes = static_cast<int64_t>(iteration) * options.tasksPerIteration *
                   options.episodesPerTask;
  point.entropy = entropy;
  double logs = 0;
  for (double ratio : ratios) {
    point.missing += ratio == 0;
    logs += std::log(ratio > 0 ? ratio : kMissingRatio);
  }
  point.validationRatio = std::exp(logs / static_cast<double>(ratios.size()));
  result.curve.push_back(point);
  // What is measured for validation does not choose when plans are counted.
  if (options.costNetwork.turns > 0 || point.validationRatio < bestRatio) {
    bestRatio = point.validationRatio;
    result.parameters = current;
  }
  if (options.progress)
    options.progress(point);
}

double Trainer::rateAt(int iteration) const {
  double done = static_cast<double>(iteration) / options.iterations;
  double share = kLastRate + (1 - kLastRate) * 0.5 *
                                 (1 + std::cos(std::numbers::pi * done));
  return options.learningRate * share;
}

Expected<TrainedPlacement> Trainer::run() {
  if (Diagnostics errors = check(options); !errors.empty())
    return tl::unexpected(errors);
  if (Expected<void> done = prepareScale(); !done)
    return tl::unexpected(done.error());
  if (Expected<void> done = prepareValidation(); !done)
    return tl::unexpected(done.error());

  PlacementStacks start;
  start.table =
      randomStack({kFeatureCount, kPlacementTableHidden, kPlacementEmbedding},
                  options.seed * 7 + 1);
  start.head = randomStack({3 * kPlacementEmbedding + kPlacementFeatureCount,
                            kPlacementHidden0, kPlacementHidden1, 1},
                           options.seed * 7 + 2);
  // All devices are nearly equally likely at first.
  for (float &weight : start.head.back().weight)
    weight *= 0.1f;
  PlacementTrainer trainer(start);
  setStacks(std::move(start));
  validate(0, 1);
  int nextTurn = 1;
  for (int i = 0; i < options.iterations; ++i) {
    // The first turn is taken; each has its share of the iterations.
    if (nextTurn < options.costNetwork.turns &&
        i == static_cast<int64_t>(nextTurn) * options.iterations /
                 options.costNetwork.turns) {
      ++nextTurn;
      if (Expected<void> taken =
              takeTurn(makePlacementPolicy(current, "learning").get());
          !taken)
        return tl::unexpected(taken.error());
    }
    Expected<std::vector<EpisodeData>> data = play(i);
    if (!data)
      return tl::unexpected(data.error());
    if (data->empty())
      continue;
    double left = 1 - static_cast<double>(i) / options.iterations;
    double entropy = trainer.step(
        *data, {rateAt(i), options.entropyWeight * left, options.threads});
    setStacks(trainer.stacks());
    if ((i + 1) % options.validateEvery == 0 || i + 1 == options.iterations)
      validate(i + 1, entropy);
  }
  return std::move(result);
}

} // namespace

Diagnostics neuroshard::check(const PlacementTrainingOptions &options) {
  Diagnostics errors = check(options.tasks);
  auto want = [&](const char *what, double value, double least, double most) {
    if (!(value >= least && value <= most))
      errors.push_back({what, "expected a number in [" + shortestText(least) +
                                  ", " + shortestText(most) +
                                  "], got: " + shortestText(value)});
  };
  want("iterations", options.iterations, 1, 1e7);
  want("tasks_per_iteration", options.tasksPerIteration, 1, 1e4);
  want("episodes_per_task", options.episodesPerTask, 2, 1e4);
  want("learning_rate", options.learningRate, 1e-8, 1);
  want("entropy_weight", options.entropyWeight, 0, 10);
  want("validation_tasks", options.validationTasks, 1, 1e5);
  want("validate_every", options.validateEvery, 1, 1e7);
  want("turns", options.costNetwork.turns, 0, options.iterations);
  want("plans_per_turn", options.costNetwork.plansPerTurn, 1, 1e5);
  want("cost_steps", options.costNetwork.costSteps, 1, 1e7);
  want("cost_learning_rate", options.costNetwork.costLearningRate, 1e-8, 1);
  want("threads", options.threads, 1, 256);
  return errors;
}

Expected<TrainedPlacement>
neuroshard::trainPlacement(const PlacementTrainingOptions &options) {
  return Trainer(options).run();
}

double
neuroshard::largestScoreDifference(const PlacementPolicyParameters &parameters,
                                   std::span<const PlacementExample> examples) {
  constexpr int kEpisodes = 3;
  PlacementStacks stacks;
  stacks.table.assign(parameters.table.begin(), parameters.table.end());
  stacks.head.assign(parameters.head.begin(), parameters.head.end());
  std::unique_ptr<PlacementPolicy> policy =
      makePlacementPolicy(parameters, "checked");
  double largest = 0;
  for (const PlacementExample &example : examples) {
    auto mdp =
        PlacementMdp::make(example.problem, *example.model, example.objective);
    std::vector<float> plain;
    RecordedEpisodes recorded =
        recordEpisodes(*mdp, policy.get(), kEpisodes, 1, &plain);
    standardise(recorded.data.tables, parameters.tableScale, kRangeMargin);
    standardise(recorded.data.features, parameters.deviceScale, kRangeMargin);
    std::vector<float> torch = placementScores(stacks, recorded.data);
    // An episode that got stuck has fewer scores.
    if (plain.size() != torch.size())
      continue;
    for (size_t i = 0; i < plain.size(); ++i)
      if (recorded.data.admits[i])
        largest = std::max(largest,
                           std::abs(static_cast<double>(plain[i]) - torch[i]));
  }
  return largest;
}
