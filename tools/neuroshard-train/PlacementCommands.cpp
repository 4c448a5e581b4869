//===- PlacementCommands.cpp - Commands on placement policies -------------===//

#include "PlacementCommands.h"

#include "Card.h"
#include "Output.h"

#include "neuroshard/Serialization/Files.h"
#include "neuroshard/Training/PlacementEvaluation.h"
#include "neuroshard/Training/PlacementTraining.h"

#include <iostream>
#include <memory>
#include <sstream>

using namespace neuroshard;

namespace {

struct PlacementSettings {
  PlacementTrainingOptions training;
  PlacementEvaluationOptions evaluation;
  std::string policy, output, curve;
};

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

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

/// A line per turn, on stderr.
void showTurn(const PlacementTurn &turn, int turns) {
  std::fprintf(stderr,
               "turn %d of %d: %lld plans measured, predicted costs %.2f %% "
               "off\n",
               turn.turn, turns, static_cast<long long>(turn.plans),
               100 * turn.costError);
}

Expected<void> writeCurve(const std::vector<PlacementCurvePoint> &curve,
                          const std::string &path) {
  if (path.empty())
    return {};
  std::ostringstream file;
  file << "iteration,episodes,ratio,missing,entropy\n";
  for (const PlacementCurvePoint &point : curve)
    file << point.iteration << "," << point.episodes << ","
         << point.validationRatio << "," << point.missing << ","
         << point.entropy << "\n";
  return writeFile(path, file.str());
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

/// Settings of the cost network have no effect without one.
Expected<void> checkTurns(const PlacementTurnSettings &network) {
  const PlacementTurnSettings usual;
  if (network.turns != 0)
    return {};
  if (network.plansPerTurn != usual.plansPerTurn)
    return failure("--plans", "expected only with --turns");
  if (network.costSteps != usual.costSteps)
    return failure("--cost-steps", "expected only with --turns");
  if (network.costLearningRate != usual.costLearningRate)
    return failure("--cost-learning-rate", "expected only with --turns");
  return {};
}

Expected<void> train(PlacementSettings &settings) {
  if (Expected<void> good = checkTurns(settings.training.costNetwork); !good)
    return good;
  if (Expected<void> good = checkFiles(settings); !good)
    return good;
  PlacementTrainingOptions &options = settings.training;
  options.progress = [&](const PlacementCurvePoint &point) {
    show(point, options.iterations);
  };
  options.turnProgress = [&](const PlacementTurn &turn) {
    showTurn(turn, options.costNetwork.turns);
  };
  Expected<TrainedPlacement> trained = trainPlacement(options);
  if (!trained)
    return tl::unexpected(trained.error());
  trained->parameters.card = makePlacementCard(options, *trained);
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
  return writeFile(settings.output, table);
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Ranges are checked by the library, which says what it expected.
void addTasks(Command &command, PlacementTaskSettings &tasks) {
  command.add("--min-tables", tasks.minTables);
  command.add("--max-tables", tasks.maxTables);
  command.add("--min-devices", tasks.minDevices);
  command.add("--max-devices", tasks.maxDevices);
  command.add("--min-fill", tasks.minFill,
              "least share of the memory that weights fill");
  command.add("--max-fill", tasks.maxFill);
  command
      .add("--cost-models", tasks.costModels,
           "names or model files to draw from; a file's tasks are on CPU "
           "devices")
      .commas();
}

void addSeed(Command &command, uint64_t &seed) {
  command.add("--seed", seed).range(0, 1 << 28);
}

void addTrain(CommandLine &line) {
  auto settings = std::make_shared<PlacementSettings>();
  PlacementTrainingOptions &training = settings->training;
  Command command = line.addCommand(
      "placement", "train a placement policy for algorithm dreamshard");
  command.add("-o,--output", settings->output, "policy file to write")
      .output("file")
      .required();
  command
      .add("--curve", settings->curve, "also write the learning curve, as CSV")
      .output("file");
  addTasks(command, training.tasks);
  addSeed(command, training.seed);
  command.add("--iterations", training.iterations);
  command.add("--tasks", training.tasksPerIteration, "per iteration");
  command.add("--episodes", training.episodesPerTask, "per task");
  command.add("--learning-rate", training.learningRate);
  command.add("--entropy-weight", training.entropyWeight);
  command.add("--validation-tasks", training.validationTasks);
  command.add("--validate-every", training.validateEvery, "iterations");
  command.add("--turns", training.costNetwork.turns,
              "train a cost network along with the policy, in so many turns of "
              "measuring plans by the cost models and learning; 0: none, the "
              "policy learns from the cost models themselves");
  command
      .add("--plans", training.costNetwork.plansPerTurn, "to measure in a turn")
      .range(1, 100000);
  command
      .add("--cost-steps", training.costNetwork.costSteps,
           "of the cost network in a turn")
      .range(1, 10000000);
  command
      .add("--cost-learning-rate", training.costNetwork.costLearningRate,
           "of the cost network")
      .range(1e-8, 1.0);
  command.add("--threads", training.threads, "does not change the result");
  command.action([settings] { return train(*settings); });
}

void addPlacementEvaluate(CommandLine &line) {
  auto settings = std::make_shared<PlacementSettings>();
  PlacementEvaluationOptions &evaluation = settings->evaluation;
  Command command = line.addCommand(
      "evaluate-placement",
      "a placement policy against the other planners on held-out tasks");
  command.add("policy", settings->policy,
              "policy file; the shipped one if there is none");
  command.add("-o,--output", settings->output, "also write the table")
      .output("file");
  addTasks(command, evaluation.tasks);
  addSeed(command, evaluation.seed);
  command.add("--count", evaluation.count, "tasks");
  command
      .add("--samples", evaluation.samples,
           "episodes of the second entry, which draws its placements at random")
      .range(0, 1000000);
  command.add("--threads", evaluation.threads, "does not change the result")
      .range(1, 256);
  command.action([settings] { return evaluate(*settings); });
}

} // namespace

void neuroshard::addPlacementCommands(CommandLine &line) {
  addTrain(line);
  addPlacementEvaluate(line);
}
