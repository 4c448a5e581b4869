//===- ComputeCommands.cpp - Commands on compute models -------------------===//

#include "ComputeCommands.h"

#include "Output.h"
#include "Progress.h"

#include "neuroshard/Training/ComputeEvaluation.h"
#include "neuroshard/Training/ComputeTraining.h"

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

Expected<NeuralComputeParameters> readComputeModel(const std::string &path) {
  return readTensorFile(path, toComputeParameters);
}

/// Null if there is no model to start from.
Expected<std::unique_ptr<NeuralComputeParameters>>
readStart(const std::string &path) {
  if (path.empty())
    return nullptr;
  Expected<NeuralComputeParameters> parameters = readComputeModel(path);
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

Expected<Split> splitOf(const Settings &settings, const ComputeSamples &samples,
                        size_t limit) {
  return splitSamples(rolesOf(samples), settings.validationShare, limit,
                      settings.training.seed);
}

/// A model's file and the samples that judge it.
struct ComputeJudging {
  ComputeSamples samples;
  NeuralComputeParameters parameters;
  const DeviceClass *deviceClass;
  Split split;
};

Expected<ComputeJudging> readComputeJudging(const Settings &settings) {
  Expected<ComputeSamples> samples = readSamples(settings.data);
  if (!samples)
    return tl::unexpected(samples.error());
  Expected<NeuralComputeParameters> parameters =
      readComputeModel(settings.model);
  if (!parameters)
    return tl::unexpected(parameters.error());
  Expected<const DeviceClass *> deviceClass = deviceClassOf(*samples);
  if (!deviceClass)
    return tl::unexpected(deviceClass.error());
  Expected<Split> split = splitOf(settings, *samples, settings.limit);
  if (!split)
    return tl::unexpected(split.error());
  return ComputeJudging{std::move(*samples), std::move(*parameters),
                        *deviceClass, std::move(*split)};
}

EvaluationRow judge(std::string subject,
                    const NeuralComputeParameters &parameters,
                    const DeviceClass &deviceClass,
                    const ComputeSamples &samples,
                    std::span<const size_t> heldOut) {
  return makeRow(std::move(subject), heldOut.size(),
                 agreement(predictSamples(NeuralCompute(parameters),
                                          deviceClass, samples, heldOut),
                           correctedTimes(samples, heldOut)));
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
  Expected<Split> split = splitOf(settings, *samples, settings.limit);
  if (!split)
    return tl::unexpected(split.error());
  Expected<NeuralComputeParameters> parameters = trainWithProgress(
      "training", *samples, *split, settings.training, from->get());
  if (!parameters)
    return tl::unexpected(parameters.error());

  EvaluationTable none = makeComputeTable();
  CardFacts facts{settings, samples->metadata, *split, none, none, {}};
  facts.heldOut.add(
      {judge("model", *parameters, *findDeviceClass(parameters->deviceClass),
             *samples, split->heldOut)});
  facts.repeats.add(repeatFloors(*samples));
  facts.interval = intervalOf(NeuralCompute(*parameters),
                              *findDeviceClass(parameters->deviceClass),
                              *samples, split->heldOut);
  return writeModel(*parameters, facts);
}

Expected<void> neuroshard::fitComputeInterval(const Settings &settings) {
  Expected<ComputeJudging> given = readComputeJudging(settings);
  if (!given)
    return tl::unexpected(given.error());
  return writeInterval(given->parameters,
                       intervalOf(NeuralCompute(given->parameters),
                                  *given->deviceClass, given->samples,
                                  given->split.heldOut),
                       settings.output);
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

  EvaluationTable table = makeComputeTable();
  std::vector<const NeuralComputeParameters *> starts = {nullptr};
  if (*from)
    starts.push_back(from->get());
  for (size_t count : settings.counts)
    for (const NeuralComputeParameters *start : starts) {
      Expected<Split> split = splitOf(settings, *samples, count);
      if (!split)
        return tl::unexpected(split.error());
      size_t used = split->training.size() + split->validation.size();
      std::string subject = std::to_string(used) + " samples, " +
                            (start ? "fine-tuned" : "from scratch");
      Expected<NeuralComputeParameters> parameters = trainWithProgress(
          subject, *samples, *split, settings.training, start);
      if (!parameters)
        return tl::unexpected(parameters.error());
      table.add({judge(subject, *parameters, **deviceClass, *samples,
                       split->heldOut)});
    }
  if (*from) {
    Expected<Split> split = splitSamples(rolesOf(*samples), 0.5, 0, 1);
    table.add({judge("0 samples, the model as it is", **from, **deviceClass,
                     *samples, split->heldOut)});
  }
  return showTable(table, settings.output);
}

Expected<void> neuroshard::evaluateComputeModel(const Settings &settings) {
  Expected<ComputeJudging> given = readComputeJudging(settings);
  if (!given)
    return tl::unexpected(given.error());
  const auto &[samples, parameters, deviceClass, split] = *given;

  EvaluationTable table = makeComputeTable();
  table.add(evaluateModel(NeuralCompute(parameters), *deviceClass, samples,
                          split.heldOut));
  table.add(repeatFloors(samples));
  table.add(evaluateRoofline(*deviceClass, samples, split));
  if (settings.baselines) {
    Progress progress("published architecture");
    table.add({evaluatePublished(
        samples, split, settings.baselineEpochs, settings.training.seed,
        [&](int64_t epoch, double loss) {
          progress({0, 1, epoch, settings.baselineEpochs, loss});
        })});
  }
  return showTable(table, settings.output);
}
