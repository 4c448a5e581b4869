//===- Card.cpp - Cards in model files ------------------------------------===//

#include "Card.h"

#include "neuroshard/Training/FileHash.h"
#include "neuroshard/Training/TorchVersion.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

using namespace neuroshard;
using Json = nlohmann::ordered_json;

namespace {

Expected<Json> describeFile(const std::string &path) {
  Expected<std::string> hash = fileSha1(path);
  if (!hash)
    return tl::unexpected(hash.error());
  std::string name = std::filesystem::path(path).filename().string();
  return Json{{"file", name}, {"sha1", *hash}};
}

/// Six digits, so that a card is readable.
double rounded(double value) { return std::round(value * 1e6) / 1e6; }

/// The bounds themselves are in the model's own metadata.
Json sourceOf(const JudgedInterval &interval) {
  return {{"method", "5 % and 95 % quantiles of measured over predicted times, "
                     "of every other held-out sample"},
          {"fitted", interval.fitted},
          {"judged", interval.judged},
          {"inside", interval.inside}};
}

Json curveOf(const std::vector<PlacementCurvePoint> &curve) {
  Json points = Json::array();
  for (const PlacementCurvePoint &point : curve)
    points.push_back({{"iteration", point.iteration},
                      {"episodes", point.episodes},
                      {"ratio", rounded(point.validationRatio)},
                      {"missing", point.missing},
                      {"entropy", rounded(point.entropy)}});
  return points;
}

Json turnsOf(const std::vector<PlacementTurn> &turns) {
  Json list = Json::array();
  for (const PlacementTurn &turn : turns)
    list.push_back({{"turn", turn.turn},
                    {"plans", turn.plans},
                    {"cost_error", rounded(turn.costError)}});
  return list;
}

} // namespace

Expected<std::string> neuroshard::makeCard(const CardFacts &facts) {
  Json card;
  auto machine = facts.metadata.find("machine");
  if (machine != facts.metadata.end())
    card["machine"] = machine->second;
  card["data"] = Json::array();
  for (const std::string &path : facts.settings.data) {
    Expected<Json> file = describeFile(path);
    if (!file)
      return tl::unexpected(file.error());
    card["data"].push_back(*file);
  }
  card["collected"] = Json(facts.metadata);
  card["samples"] = {{"training", facts.split.training.size()},
                     {"validation", facts.split.validation.size()},
                     {"held_out", facts.split.heldOut.size()}};
  card["training"] = {{"seed", facts.settings.training.seed},
                      {"members", facts.settings.training.members},
                      {"epochs", facts.settings.training.epochs},
                      {"min_steps", facts.settings.training.minSteps},
                      {"batch", facts.settings.training.batch},
                      {"learning_rate", facts.settings.training.learningRate},
                      {"weight_decay", facts.settings.training.weightDecay},
                      {"torch", torchVersion()}};
  if (!facts.settings.from.empty()) {
    Expected<Json> file = describeFile(facts.settings.from);
    if (!file)
      return tl::unexpected(file.error());
    card["fine_tuned_from"] = *file;
  }
  card["held_out"] = Json::parse(toJson(facts.heldOut));
  card["repeat_floor"] = Json::parse(toJson(facts.repeats));
  if (facts.interval)
    card["interval"] = sourceOf(*facts.interval);
  return card.dump();
}

std::string neuroshard::withInterval(const std::string &card,
                                     const JudgedInterval &interval) {
  Json changed = Json::parse(card);
  changed["interval"] = sourceOf(interval);
  return changed.dump();
}

std::string
neuroshard::makePlacementCard(const PlacementTrainingOptions &options,
                              const TrainedPlacement &trained) {
  const PlacementTaskSettings &tasks = options.tasks;
  Json models = Json::array();
  for (const std::string &name : tasks.costModels)
    models.push_back(std::filesystem::path(name).filename().string());
  Json card;
  card["training"] = {{"seed", options.seed},
                      {"iterations", options.iterations},
                      {"tasks_per_iteration", options.tasksPerIteration},
                      {"episodes_per_task", options.episodesPerTask},
                      {"learning_rate", options.learningRate},
                      {"entropy_weight", options.entropyWeight},
                      {"torch", torchVersion()}};
  if (options.costNetwork.turns > 0)
    card["cost_network"] = {
        {"turns", options.costNetwork.turns},
        {"plans_per_turn", options.costNetwork.plansPerTurn},
        {"steps_per_turn", options.costNetwork.costSteps},
        {"learning_rate", options.costNetwork.costLearningRate},
        {"measured", turnsOf(trained.turns)}};
  card["tasks"] = {{"tables", {tasks.minTables, tasks.maxTables}},
                   {"devices", {tasks.minDevices, tasks.maxDevices}},
                   {"fill", {tasks.minFill, tasks.maxFill}},
                   {"cost_models", models}};
  card["curve"] = curveOf(trained.curve);
  return card.dump();
}
