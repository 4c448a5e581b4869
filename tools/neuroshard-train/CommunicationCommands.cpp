//===- CommunicationCommands.cpp - Commands on exchange models ------------===//

#include "CommunicationCommands.h"

#include "Output.h"
#include "Progress.h"

#include "neuroshard/Training/CommunicationEvaluation.h"
#include "neuroshard/Training/CommunicationTraining.h"

using namespace neuroshard;

namespace {

Expected<CommunicationSamples> readSamples(const Settings &settings) {
  if (settings.data.size() != 1)
    return failure("data",
                   "expected one file of exchanges; put several together with "
                   "python -m neuroshard.collect.merge");
  return readCommunicationSamples(settings.data.front());
}

Expected<CommunicationParameters>
readCommunicationModel(const std::string &path) {
  return readTensorFile(path, toCommunicationParameters);
}

Expected<Split> splitOf(const Settings &settings,
                        const CommunicationSamples &samples) {
  return splitSamples(rolesOf(samples, settings.leaveOut),
                      settings.validationShare, settings.limit,
                      settings.training.seed);
}

Expected<CommunicationParameters>
trainWithProgress(const Settings &settings, const CommunicationSamples &samples,
                  const Split &split) {
  std::optional<CommunicationParameters> from;
  if (!settings.from.empty()) {
    Expected<CommunicationParameters> start =
        readCommunicationModel(settings.from);
    if (!start)
      return start;
    from = std::move(*start);
  }
  Progress progress("training");
  TrainingOptions options = settings.training;
  options.progress = [&](const TrainingProgress &now) { progress(now); };
  return trainCommunication(samples, split, options, from ? &*from : nullptr);
}

/// A model's file and the samples that judge it.
struct ExchangeJudging {
  CommunicationSamples samples;
  CommunicationParameters parameters;
  Split split;
};

Expected<ExchangeJudging> readExchangeJudging(const Settings &settings) {
  Expected<CommunicationSamples> samples = readSamples(settings);
  if (!samples)
    return tl::unexpected(samples.error());
  Expected<CommunicationParameters> parameters =
      readCommunicationModel(settings.model);
  if (!parameters)
    return tl::unexpected(parameters.error());
  Expected<Split> split = splitOf(settings, *samples);
  if (!split)
    return tl::unexpected(split.error());
  return ExchangeJudging{std::move(*samples), std::move(*parameters),
                         std::move(*split)};
}

} // namespace

Expected<void> neuroshard::trainCommunicationModel(const Settings &settings) {
  Expected<CommunicationSamples> samples = readSamples(settings);
  if (!samples)
    return tl::unexpected(samples.error());
  Expected<Split> split = splitOf(settings, *samples);
  if (!split)
    return tl::unexpected(split.error());
  Expected<CommunicationParameters> parameters =
      trainWithProgress(settings, *samples, *split);
  if (!parameters)
    return tl::unexpected(parameters.error());

  EvaluationTable none = makeCommunicationTable();
  CardFacts facts{settings, samples->metadata, *split, none, none, {}};
  facts.heldOut.add(
      evaluateModel(CommunicationModel(*parameters), *samples, *split));
  facts.repeats.add(repeatFloors(*samples));
  facts.interval =
      intervalOf(CommunicationModel(*parameters), *samples, split->heldOut);
  return writeModel(*parameters, facts);
}

Expected<void> neuroshard::fitCommunicationInterval(const Settings &settings) {
  Expected<ExchangeJudging> given = readExchangeJudging(settings);
  if (!given)
    return tl::unexpected(given.error());
  return writeInterval(given->parameters,
                       intervalOf(CommunicationModel(given->parameters),
                                  given->samples, given->split.heldOut),
                       settings.output);
}

Expected<void>
neuroshard::evaluateCommunicationModel(const Settings &settings) {
  Expected<ExchangeJudging> given = readExchangeJudging(settings);
  if (!given)
    return tl::unexpected(given.error());
  const auto &[samples, parameters, split] = *given;

  EvaluationTable table = makeCommunicationTable();
  table.add(evaluateModel(CommunicationModel(parameters), samples, split));
  table.add(repeatFloors(samples));
  table.add({evaluateClosedForm(samples, split)});
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
