//===- neuroshard-train.cpp - Trains cost models from measurements --------===//
//
// The commands are in ComputeCommands.h, CommunicationCommands.h and
// PlacementCommands.h;
// docs/training.md shows them at work.
//
//===----------------------------------------------------------------------===//

#include "CommunicationCommands.h"
#include "ComputeCommands.h"
#include "Output.h"
#include "PlacementCommands.h"

#include "neuroshard/CostModel/CommunicationModel.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <iostream>

using namespace neuroshard;

namespace {

using Command = std::function<Expected<void>(const Settings &)>;

/// CLI11's own range lets "nan" through.
CLI::Validator numberFrom(double low, double high) {
  std::string range =
      "[" + CLI::detail::to_string(low) + " - " + CLI::detail::to_string(high);
  range += "]";
  return CLI::Validator(
      [=](std::string &text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= low &&
            value <= high)
          return std::string();
        return "expected a number in " + range + ", got: " + text;
      },
      "FLOAT in " + range);
}

void addData(CLI::App &app, Settings &settings) {
  app.add_option("data", settings.data, "files of measured samples")
      ->required();
}

void addTraining(CLI::App &app, Settings &settings) {
  TrainingOptions &training = settings.training;
  app.add_option("--members", training.members, "networks in the ensemble")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app.add_option("--seed", training.seed)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--epochs", training.epochs, "passes over the samples")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  app.add_option("--min-steps", training.minSteps,
                 "more passes where they would make fewer steps")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000}))
      ->capture_default_str();
  app.add_option("--batch", training.batch, "samples in a step")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  app.add_option("--learning-rate", training.learningRate)
      ->check(numberFrom(1e-8, 1))
      ->capture_default_str();
  app.add_option("--weight-decay", training.weightDecay)
      ->check(numberFrom(0, 100))
      ->capture_default_str();
  app.add_option("--threads", training.threads,
                 "networks trained at once; does not change the result")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--validation-share", settings.validationShare,
                 "share of the training samples that decide when to stop")
      ->check(numberFrom(0.01, 0.9))
      ->capture_default_str();
}

void addFrom(CLI::App &app, Settings &settings) {
  app.add_option("--from", settings.from, "fine-tune this model");
}

void addModelOutput(CLI::App &app, Settings &settings) {
  app.add_option("-o,--output", settings.output, "model file to write")
      ->required();
  app.add_option("--limit", settings.limit,
                 "use so many of the training samples; 0: all")
      ->check(CLI::NonNegativeNumber);
}

void addTableOutput(CLI::App &app, Settings &settings) {
  app.add_option("-o,--output", settings.output,
                 "also write the table: .json, or markdown");
}

void addLeaveOut(CLI::App &app, Settings &settings) {
  app.add_option("--leave-out", settings.leaveOut,
                 "numbers of devices that training does not see")
      ->delimiter(',');
}

/// The kind of a model is in its file.
Expected<void> evaluateModelFile(const Settings &settings) {
  Expected<TensorFile> file = readTensorFile(settings.model);
  if (!file)
    return tl::unexpected(file.error());
  Expected<std::string> schema = file->getMetadata("schema");
  if (schema && *schema == kCommunicationModelSchema)
    return evaluateCommunicationModel(settings);
  return evaluateComputeModel(settings);
}

int run(const std::function<Expected<void>()> &command) {
  Expected<void> done;
  // LibTorch reports what goes wrong inside it by exceptions.
  try {
    done = command();
  } catch (const std::exception &error) {
    done = failure("training failed", error.what());
  }
  if (done)
    return 0;
  std::cerr << "neuroshard-train: " << toString(done.error()) << "\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  Command chosen;
  CLI::App app("Trains cost models from measurements, and judges them");
  app.require_subcommand(1);
  auto add = [&](const char *name, const char *description, Command command) {
    CLI::App *sub = app.add_subcommand(name, description);
    sub->callback([&chosen, command] { chosen = command; });
    addTraining(*sub, settings);
    return sub;
  };

  CLI::App *compute =
      add("compute", "train a compute model", trainComputeModel);
  addData(*compute, settings);
  addModelOutput(*compute, settings);
  addFrom(*compute, settings);

  CLI::App *communication =
      add("communication", "train a model of exchanges between devices",
          trainCommunicationModel);
  addData(*communication, settings);
  addModelOutput(*communication, settings);
  addFrom(*communication, settings);
  addLeaveOut(*communication, settings);

  CLI::App *curve =
      add("curve", "held-out error by number of samples", drawComputeCurve);
  addData(*curve, settings);
  addTableOutput(*curve, settings);
  addFrom(*curve, settings);
  curve->add_option("--counts", settings.counts, "numbers of samples")
      ->delimiter(',')
      ->check(CLI::Range(size_t{2}, size_t{1} << 40));

  CLI::App *evaluate = add("evaluate", "figures of a model on held-out samples",
                           evaluateModelFile);
  evaluate->add_option("model", settings.model, "model file")->required();
  addData(*evaluate, settings);
  addTableOutput(*evaluate, settings);
  addLeaveOut(*evaluate, settings);
  evaluate->add_flag("--baselines", settings.baselines,
                     "also train the published architecture");
  evaluate->add_option("--baseline-epochs", settings.baselineEpochs)
      ->capture_default_str();

  PlacementCommand placement;
  addPlacementCommands(app, placement);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  if (placement)
    return run(placement);
  return run([&] {
    Expected<void> good = checkOutput(settings);
    return good ? chosen(settings) : good;
  });
}
