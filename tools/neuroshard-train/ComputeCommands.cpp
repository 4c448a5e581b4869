//===- ComputeCommands.cpp - Commands on compute models -------------------===//

#include "ComputeCommands.h"

#include "Card.h"
#include "Output.h"
#include "Progress.h"

#include "neuroshard/Training/ComputeEvaluation.h"
#include "neuroshard/Training/ComputeTraining.h"

#include <iostream>

using namespace neuroshard;

namespace {

Expected<ComputeSamples> readSamples(const std::vector<std::string> &paths) {
  std::vector<ComputeSamples> parts;
  for (const std::string &path : paths) {
    Expected<ComputeSamples> part = readComputeSamples(path);
    if (!part)
      return part;
    parts.push_back(std::move(*part));
  }
  return mergeSamples(std::move(parts));
}

Expected<NeuralComputeParameters> readModel(const std::string &path) {
  Expected<TensorFile> file = readTensorFile(path);
  if (!file)
    return tl::unexpected(file.error());
  Expected<NeuralComputeParameters> parameters = toComputeParameters(*file);
  if (!parameters)
    for (Diagnostic &diagnostic : parameters.error())
      diagnostic.where = path + ": " + diagnostic.where;
  return parameters;
}

/// Null if there is no model to start from.
Expected<std::unique_ptr<NeuralComputeParameters>>
readStart(const std::string &path) {
  if (path.empty())
    return nullptr;
  Expected<NeuralComputeParameters> parameters = readModel(path);
  if (!parameters)
    return tl::unexpected(parameters.error());
  return std::make_unique<NeuralComputeParameters>(std::move(*parameters));
}

/// The same for commands that show progress on a line of their own.
Expected<NeuralComputeParameters>
trainWithProgress(const std::string &what, const ComputeSamples &samples,
                  const Split &split, TrainingOptions options,
                  const NeuralComputeParameters *from) {
  Progress progress(what);
  options.progress = [&](const TrainingProgress &now) { progress(now); };
  return trainCompute(samples, split, options, from);
}

Agreement judge(const NeuralComputeParameters &parameters,
                const DeviceClass &deviceClass, const ComputeSamples &samples,
                std::span<const size_t> heldOut) {
  return agreement(
      predictSamples(NeuralCompute(parameters), deviceClass, samples, heldOut),
      correctedTimes(samples, heldOut));
}

Expected<void> writeModel(NeuralComputeParameters &parameters,
                          const Settings &settings, const CardFacts &facts) {
  Expected<std::string> card = makeCard(facts);
  if (!card)
    return tl::unexpected(card.error());
  parameters.card = *card;
  Expected<TensorFile> file = toTensorFile(parameters);
  if (!file)
    return tl::unexpected(file.error());
  return writeTensorFile(*file, settings.output);
}

} // namespace

Expected<void> neuroshard::trainComputeModel(const Settings &settings) {
  Expected<ComputeSamples> samples = readSamples(settings.data);
  if (!samples)
    return tl::unexpected(samples.error());
  Expected<std::unique_ptr<NeuralComputeParameters>> from =
      readStart(settings.from);
  if (!from)
    return tl::unexpected(from.error());
  Expected<Split> split =
      splitSamples(rolesOf(*samples), settings.validationShare, settings.limit,
                   settings.training.seed);
  if (!split)
    return tl::unexpected(split.error());
  Expected<NeuralComputeParameters> parameters = trainWithProgress(
      "training", *samples, *split, settings.training, from->get());
  if (!parameters)
    return tl::unexpected(parameters.error());

  CardFacts facts{settings.data,         samples->metadata, *split,
                  settings.training,     settings.from,     {},
                  repeatFloors(*samples)};
  facts.heldOut = {
      {"model", judge(*parameters, *findDeviceClass(parameters->deviceClass),
                      *samples, split->heldOut)}};
  if (Expected<void> done = writeModel(*parameters, settings, facts); !done)
    return done;
  std::vector<EvaluationRow> rows = facts.heldOut;
  rows.insert(rows.end(), facts.repeats.begin(), facts.repeats.end());
  return showTable(rows, "");
}

Expected<void> neuroshard::drawComputeCurve(const Settings &settings) {
  Expected<ComputeSamples> samples = readSamples(settings.data);
  if (!samples)
    return tl::unexpected(samples.error());
  Expected<std::unique_ptr<NeuralComputeParameters>> from =
      readStart(settings.from);
  if (!from)
    return tl::unexpected(from.error());
  Expected<const DeviceClass *> deviceClass = deviceClassOf(*samples);
  if (!deviceClass)
    return tl::unexpected(deviceClass.error());

  std::vector<EvaluationRow> rows;
  std::vector<const NeuralComputeParameters *> starts = {nullptr};
  if (*from)
    starts.push_back(from->get());
  for (size_t count : settings.counts)
    for (const NeuralComputeParameters *start : starts) {
      Expected<Split> split =
          splitSamples(rolesOf(*samples), settings.validationShare, count,
                       settings.training.seed);
      if (!split)
        return tl::unexpected(split.error());
      size_t used = split->training.size() + split->validation.size();
      std::string subject = std::to_string(used) + " samples, " +
                            (start ? "fine-tuned" : "from scratch");
      Expected<NeuralComputeParameters> parameters = trainWithProgress(
          subject, *samples, *split, settings.training, start);
      if (!parameters)
        return tl::unexpected(parameters.error());
      rows.push_back({subject, judge(*parameters, **deviceClass, *samples,
                                     split->heldOut)});
    }
  if (*from) {
    Expected<Split> split = splitSamples(rolesOf(*samples), 0.5, 0, 1);
    rows.push_back({"0 samples, the model as it is",
                    judge(**from, **deviceClass, *samples, split->heldOut)});
  }
  return showTable(rows, settings.output);
}

Expected<void> neuroshard::evaluateComputeModel(const Settings &settings) {
  Expected<ComputeSamples> samples = readSamples(settings.data);
  if (!samples)
    return tl::unexpected(samples.error());
  Expected<NeuralComputeParameters> parameters = readModel(settings.model);
  if (!parameters)
    return tl::unexpected(parameters.error());
  Expected<const DeviceClass *> deviceClass = deviceClassOf(*samples);
  if (!deviceClass)
    return tl::unexpected(deviceClass.error());
  Expected<Split> split =
      splitSamples(rolesOf(*samples), settings.validationShare, settings.limit,
                   settings.training.seed);
  if (!split)
    return tl::unexpected(split.error());

  std::vector<EvaluationRow> rows = evaluateModel(
      NeuralCompute(*parameters), **deviceClass, *samples, split->heldOut);
  auto add = [&](std::vector<EvaluationRow> more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  add(repeatFloors(*samples));
  add(evaluateRoofline(**deviceClass, *samples, *split));
  if (settings.baselines) {
    Progress progress("published architecture");
    rows.push_back(evaluatePublished(
        *samples, *split, settings.baselineEpochs, settings.training.seed,
        [&](int64_t epoch, double loss) {
          progress({0, 1, epoch, settings.baselineEpochs, loss});
        }));
  }
  return showTable(rows, settings.output);
}
