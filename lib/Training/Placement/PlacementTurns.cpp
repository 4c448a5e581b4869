//===- PlacementTurns.cpp - Turns of measuring and learning costs ---------===//

#include "PlacementTurns.h"

#include "PlacementEpisodes.h"

#include <cmath>
#include <optional>

using namespace neuroshard;

namespace {

/// Away from the seeds of learning, see PlacementTraining.cpp.
constexpr uint64_t kTurnSeedsApart = uint64_t{1} << 32;
constexpr uint64_t kFirstSeed = uint64_t{1} << 31;

struct Outcome {
  PlanTimes plan;
  double predictedMs = 0;
};

/// An episode in the task with estimated costs, whose plan is then measured.
/// Nothing when it gets stuck.
std::optional<Outcome> tryPolicy(const PlacementExample &example,
                                 const CostModel &estimate,
                                 const PlacementPolicy *policy, uint64_t seed) {
  auto mdp = PlacementMdp::make(example.problem, estimate, example.objective);
  if (!mdp)
    return std::nullopt;
  RecordedEpisodes recorded = recordEpisodes(*mdp, policy, 1, seed);
  if (std::isnan(recorded.costsMs[0]))
    return std::nullopt;
  std::vector<int> devices(mdp->task().pieces.size(), -1);
  for (size_t step = 0; step < recorded.data.order.size(); ++step)
    devices[static_cast<size_t>(recorded.data.order[step])] =
        static_cast<int>(recorded.data.actions[step]);
  return Outcome{measurePlan(example, devices), recorded.costsMs[0]};
}

} // namespace

PlacementTurns::PlacementTurns(const PlacementTaskSettings &tasks,
                               const PlacementTurnSettings &settings,
                               uint64_t seed, int threads,
                               FeatureScale tableScale)
    : tasks(tasks), settings(settings), seed(seed), threads(threads),
      networks(std::move(tableScale), seed * 7 + 3) {}

Expected<PlacementTurn> PlacementTurns::take(const PlacementPolicy *policy) {
  size_t count = static_cast<size_t>(settings.plansPerTurn);
  uint64_t first = seed * 2 * kTurnSeedsApart + kFirstSeed +
                   static_cast<uint64_t>(turns) * count;
  auto examples = randomPlacementExamples(tasks, first, settings.plansPerTurn);
  if (!examples)
    return tl::unexpected(examples.error());
  std::vector<std::optional<Outcome>> outcomes(count);
  inParallel(threads, count, [&](size_t i) {
    const PlacementExample &example = (*examples)[i];
    outcomes[i] = tryPolicy(example, *networks.modelFor(hardwareOf(example)),
                            policy, first + i);
  });
  PlacementTurn turn;
  double measured = 0;
  for (const std::optional<Outcome> &outcome : outcomes) {
    if (!outcome)
      continue;
    networks.add(outcome->plan);
    turn.costError +=
        std::abs(std::log(outcome->predictedMs / outcome->plan.costMs));
    ++measured;
  }
  networks.fit({settings.costSteps, settings.costLearningRate, threads});
  plans += static_cast<int64_t>(measured);
  turn.turn = ++turns;
  turn.plans = plans;
  turn.costError /= std::max(1.0, measured);
  return turn;
}

void PlacementTurns::estimate(std::span<PlacementExample> examples) const {
  for (PlacementExample &example : examples)
    example.model = networks.modelFor(hardwareOf(example));
}
