//===- ModelCommands.cpp - Commands that train cost models ----------------===//

#include "ModelCommands.h"

#include "CommunicationCommands.h"
#include "ComputeCommands.h"
#include "Output.h"

#include "neuroshard/CostModel/CommunicationModel.h"
#include "neuroshard/Model/Limits.h"

#include <memory>

using namespace neuroshard;

namespace {

using Run = Expected<void> (*)(const Settings &);

void addTraining(Command &command, Settings &settings) {
  TrainingOptions &training = settings.training;
  command.add("--members", training.members, "networks in the ensemble")
      .range(1, kMaxMembers);
  command.add("--seed", training.seed);
  command.add("--epochs", training.epochs, "passes over the samples")
      .range(1, 1000000);
  command
      .add("--min-steps", training.minSteps,
           "more passes where they would make fewer steps")
      .range(0, 1000000);
  command.add("--batch", training.batch, "samples in a step").range(1, 1000000);
  command.add("--learning-rate", training.learningRate).range(1e-8, 1.0);
  command.add("--weight-decay", training.weightDecay).range(0.0, 100.0);
  command
      .add("--threads", training.threads,
           "networks trained at once; does not change the result")
      .range(1, 256);
  command
      .add("--validation-share", settings.validationShare,
           "share of the training samples that decide when to stop")
      .range(0.01, 0.9);
}

/// A command on files of measured samples, with the options of training.
Command addCommand(CommandLine &line, const char *name, const char *description,
                   const std::shared_ptr<Settings> &settings, Run run) {
  Command command = line.addCommand(name, description);
  addTraining(command, *settings);
  command.action([settings, run] {
    Expected<void> good = checkOutput(*settings);
    return good ? run(*settings) : good;
  });
  return command;
}

void addData(Command &command, Settings &settings) {
  command.add("data", settings.data, "files of measured samples").required();
}

void addFrom(Command &command, Settings &settings) {
  command.add("--from", settings.from, "fine-tune this model");
}

void addModelOutput(Command &command, Settings &settings) {
  command.add("-o,--output", settings.output, "model file to write")
      .output("file")
      .required();
  command.add("--limit", settings.limit,
              "use so many of the training samples; 0: all");
}

void addTableOutput(Command &command, Settings &settings) {
  command
      .add("-o,--output", settings.output,
           "also write the table: .json, or markdown")
      .output("file");
}

void addLeaveOut(Command &command, Settings &settings) {
  command
      .add("--leave-out", settings.leaveOut,
           "numbers of devices that training does not see")
      .commas()
      .range(int64_t{1}, kMaxDevices);
}

/// The kind of a model is in its file.
Expected<void> runByKind(const Settings &settings, Run compute,
                         Run communication) {
  Expected<TensorFile> file = readTensorFile(settings.model);
  if (!file)
    return tl::unexpected(file.error());
  Expected<std::string> schema = file->getMetadata("schema");
  if (schema && *schema == kCommunicationModelSchema)
    return communication(settings);
  return compute(settings);
}

Expected<void> evaluateModelFile(const Settings &settings) {
  return runByKind(settings, evaluateComputeModel, evaluateCommunicationModel);
}

Expected<void> fitInterval(const Settings &settings) {
  return runByKind(settings, fitComputeInterval, fitCommunicationInterval);
}

void addCompute(CommandLine &line) {
  auto settings = std::make_shared<Settings>();
  Command command = addCommand(line, "compute", "train a compute model",
                               settings, trainComputeModel);
  addData(command, *settings);
  addModelOutput(command, *settings);
  addFrom(command, *settings);
}

void addCommunication(CommandLine &line) {
  auto settings = std::make_shared<Settings>();
  Command command = addCommand(line, "communication",
                               "train a model of exchanges between devices",
                               settings, trainCommunicationModel);
  addData(command, *settings);
  addModelOutput(command, *settings);
  addFrom(command, *settings);
  addLeaveOut(command, *settings);
}

void addCurve(CommandLine &line) {
  auto settings = std::make_shared<Settings>();
  Command command =
      addCommand(line, "curve", "held-out error by number of samples", settings,
                 drawComputeCurve);
  addData(command, *settings);
  addTableOutput(command, *settings);
  addFrom(command, *settings);
  command.add("--counts", settings->counts, "numbers of samples")
      .commas()
      .range(int64_t{2}, int64_t{1} << 40);
}

void addEvaluate(CommandLine &line) {
  auto settings = std::make_shared<Settings>();
  Command command =
      addCommand(line, "evaluate", "figures of a model on held-out samples",
                 settings, evaluateModelFile);
  command.add("model", settings->model, "model file").required();
  addData(command, *settings);
  addTableOutput(command, *settings);
  addLeaveOut(command, *settings);
  command.addFlag("--baselines", settings->baselines,
                  "also train the published architecture");
  command.add("--baseline-epochs", settings->baselineEpochs).range(1, 1000000);
}

void addInterval(CommandLine &line) {
  auto settings = std::make_shared<Settings>();
  Command command = line.addCommand(
      "interval",
      "between which multiples of a model's times measured ones lie");
  command.add("model", settings->model, "model file").required();
  addData(command, *settings);
  command
      .add("-o,--output", settings->output,
           "model file to write: the same with this interval")
      .output("file")
      .required();
  command.action([settings] {
    Expected<void> good = checkOutput(*settings);
    return good ? fitInterval(*settings) : good;
  });
}

} // namespace

void neuroshard::addModelCommands(CommandLine &line) {
  addCompute(line);
  addCommunication(line);
  addCurve(line);
  addEvaluate(line);
  addInterval(line);
}
