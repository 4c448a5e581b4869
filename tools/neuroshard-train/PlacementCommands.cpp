//===- PlacementCommands.cpp - Commands on placement policies -------------===//

#include "PlacementCommands.h"

#include "Output.h"

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Training/FileHash.h"
#include "neuroshard/Training/PlacementEvaluation.h"
#include "neuroshard/Training/PlacementTraining.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

using namespace neuroshard;
using Json = nlohmann::ordered_json;

namespace {

struct PlacementSettings {
  PlacementTrainingOptions training;
  PlacementEvaluationOptions evaluation;
  std::string policy, output, curve;
};

using Shared = std::shared_ptr<PlacementSettings>;

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

/// Six digits, so that a card is readable.
double rounded(double value) { return std::round(value * 1e6) / 1e6; }

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

std::string cardOf(const PlacementTrainingOptions &options,
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
  card["tasks"] = {{"tables", {tasks.minTables, tasks.maxTables}},
                   {"devices", {tasks.minDevices, tasks.maxDevices}},
                   {"fill", {tasks.minFill, tasks.maxFill}},
                   {"cost_models", models}};
  card["curve"] = curveOf(trained.curve);
  return card.dump();
}

/// A line per point of the curve, on stderr.
void show(const PlacementCurvePoint &point, int iterations) {
  std::fprintf(stderr,
               "iteration %d of %d: %lld episodes, cost against the best "
               "greedy baseline %+.2f %%, %d tasks without a placement, "
               "entropy %.3f\n",
               point.iteration, iterations,
               static_cast<long long>(point.episodes),
               100 * (point.validationRatio - 1), point.missing, point.entropy);
}

Expected<void> writeCurve(const std::vector<PlacementCurvePoint> &curve,
                          const std::string &path) {
  if (path.empty())
    return {};
  std::ofstream file(path);
  file << "iteration,episodes,ratio,missing,entropy\n";
  for (const PlacementCurvePoint &point : curve)
    file << point.iteration << "," << point.episodes << ","
         << point.validationRatio << "," << point.missing << ","
         << point.entropy << "\n";
  file.flush();
  if (!file)
    return failure(path, "cannot be written");
  return {};
}

Expected<void> checkFiles(const PlacementSettings &settings) {
  for (const std::string &path : {settings.output, settings.curve}) {
    Settings plain;
    plain.model = settings.policy;
    plain.output = path;
    if (Expected<void> good = checkOutput(plain); !good)
      return good;
  }
  if (!settings.curve.empty() && settings.curve == settings.output)
    return failure(settings.curve, "policy and curve need files of their own");
  return {};
}

Expected<void> train(PlacementSettings &settings) {
  if (Expected<void> good = checkFiles(settings); !good)
    return good;
  PlacementTrainingOptions &options = settings.training;
  options.progress = [&](const PlacementCurvePoint &point) {
    show(point, options.iterations);
  };
  Expected<TrainedPlacement> trained = trainPlacement(options);
  if (!trained)
    return tl::unexpected(trained.error());
  trained->parameters.card = cardOf(options, *trained);
  Expected<TensorFile> file = toTensorFile(trained->parameters);
  if (!file)
    return tl::unexpected(file.error());
  if (Expected<void> written = writeCurve(trained->curve, settings.curve);
      !written)
    return written;
  return writeTensorFile(*file, settings.output);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

Expected<void> evaluate(const PlacementSettings &settings) {
  if (Expected<void> good = checkFiles(settings); !good)
    return good;
  Expected<std::unique_ptr<PlacementPolicy>> policy =
      readPlacementPolicy(settings.policy);
  if (!policy)
    return tl::unexpected(policy.error());
  Expected<std::vector<PlacementComparison>> comparisons =
      evaluatePlacement(**policy, settings.evaluation);
  if (!comparisons)
    return tl::unexpected(comparisons.error());
  std::string table = toMarkdown(*comparisons);
  std::cout << table;
  if (settings.output.empty())
    return {};
  std::ofstream file(settings.output);
  file << table;
  file.flush();
  if (!file)
    return failure(settings.output, "cannot be written");
  return {};
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Ranges are checked by the library, which says what it expected.
void addTasks(CLI::App &app, PlacementTaskSettings &tasks) {
  app.add_option("--min-tables", tasks.minTables)->capture_default_str();
  app.add_option("--max-tables", tasks.maxTables)->capture_default_str();
  app.add_option("--min-devices", tasks.minDevices)->capture_default_str();
  app.add_option("--max-devices", tasks.maxDevices)->capture_default_str();
  app.add_option("--min-fill", tasks.minFill,
                 "least share of the memory that weights fill")
      ->capture_default_str();
  app.add_option("--max-fill", tasks.maxFill)->capture_default_str();
  app.add_option("--cost-models", tasks.costModels,
                 "names or model files to draw from; a file's tasks are on "
                 "CPU devices")
      ->delimiter(',')
      ->capture_default_str();
}

void addTrain(CLI::App &app, PlacementCommand &chosen) {
  auto settings = std::make_shared<PlacementSettings>();
  PlacementTrainingOptions &training = settings->training;
  CLI::App *sub = app.add_subcommand(
      "placement", "train a placement policy for algorithm dreamshard");
  sub->add_option("-o,--output", settings->output, "policy file to write")
      ->required();
  sub->add_option("--curve", settings->curve,
                  "also write the learning curve, as CSV");
  addTasks(*sub, training.tasks);
  sub->add_option("--seed", training.seed)
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 28))
      ->capture_default_str();
  sub->add_option("--iterations", training.iterations)->capture_default_str();
  sub->add_option("--tasks", training.tasksPerIteration, "per iteration")
      ->capture_default_str();
  sub->add_option("--episodes", training.episodesPerTask, "per task")
      ->capture_default_str();
  sub->add_option("--learning-rate", training.learningRate)
      ->capture_default_str();
  sub->add_option("--entropy-weight", training.entropyWeight)
      ->capture_default_str();
  sub->add_option("--validation-tasks", training.validationTasks)
      ->capture_default_str();
  sub->add_option("--validate-every", training.validateEvery, "iterations")
      ->capture_default_str();
  sub->add_option("--threads", training.threads, "does not change the result")
      ->capture_default_str();
  sub->callback([&chosen, settings] {
    chosen = [settings] { return train(*settings); };
  });
}

void addEvaluate(CLI::App &app, PlacementCommand &chosen) {
  auto settings = std::make_shared<PlacementSettings>();
  PlacementEvaluationOptions &evaluation = settings->evaluation;
  CLI::App *sub = app.add_subcommand(
      "evaluate-placement",
      "a placement policy against the other planners on held-out tasks");
  sub->add_option("policy", settings->policy,
                  "policy file; the shipped one if there is none");
  sub->add_option("-o,--output", settings->output, "also write the table");
  addTasks(*sub, evaluation.tasks);
  sub->add_option("--seed", evaluation.seed)
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 28))
      ->capture_default_str();
  sub->add_option("--count", evaluation.count, "tasks")->capture_default_str();
  sub->add_option("--samples", evaluation.samples,
                  "episodes by chance of the second entry")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  sub->add_option("--threads", evaluation.threads, "does not change the result")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  sub->callback([&chosen, settings] {
    chosen = [settings] { return evaluate(*settings); };
  });
}

} // namespace

void neuroshard::addPlacementCommands(CLI::App &app, PlacementCommand &chosen) {
  addTrain(app, chosen);
  addEvaluate(app, chosen);
}
