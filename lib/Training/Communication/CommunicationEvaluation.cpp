//===- CommunicationEvaluation.cpp - Accuracy on measured exchanges -------===//

#include "neuroshard/Training/CommunicationEvaluation.h"

#include "neuroshard/Training/CommunicationTraining.h"

#include <algorithm>
#include <map>
#include <set>

using namespace neuroshard;

namespace {

std::vector<double> everyDevice(const ExchangeTimes &times) {
  std::vector<double> all;
  for (const std::vector<double> &devices : times)
    all.insert(all.end(), devices.begin(), devices.end());
  return all;
}

std::vector<double> slowest(const ExchangeTimes &times) {
  std::vector<double> result;
  for (const std::vector<double> &devices : times)
    result.push_back(*std::max_element(devices.begin(), devices.end()));
  return result;
}

ExchangeTimes measuredTimes(const CommunicationSamples &samples,
                            std::span<const size_t> indices) {
  ExchangeTimes times;
  for (size_t i : indices)
    times.push_back(samples.samples[i].timesMs);
  return times;
}

int devicesOf(const CommunicationSample &sample) {
  return static_cast<int>(sample.timesMs.size());
}

std::string deviceCountText(int devices) {
  return std::to_string(devices) + (devices == 1 ? " device" : " devices");
}

std::string_view directionName(Direction direction) {
  switch (direction) {
  case Direction::Input:
    return "input";
  case Direction::Forward:
    return "forward";
  case Direction::Backward:
    return "backward";
  }
  return "";
}

std::set<int> trainedCounts(const CommunicationSamples &samples,
                            const Split &split) {
  std::set<int> counts;
  for (size_t i : split.training)
    counts.insert(devicesOf(samples.samples[i]));
  return counts;
}

/// Predictions and measurements of the same exchanges, in groups with a row
/// each.
class Groups {
public:
  void add(const std::string &group, const std::vector<double> &predicted,
           const std::vector<double> &measured) {
    groups[group].first.push_back(predicted);
    groups[group].second.push_back(measured);
  }
  std::vector<EvaluationRow> rows(const std::string &prefix) const {
    std::vector<EvaluationRow> result;
    for (const auto &[group, times] : groups)
      result.push_back(makeRow(prefix + group, times.first, times.second));
    return result;
  }

private:
  std::map<std::string, std::pair<ExchangeTimes, ExchangeTimes>> groups;
};

EvaluationRow makeRepeatRow(std::string subject, const ExchangeTimes &first,
                            const ExchangeTimes &second) {
  return {std::move(subject),
          first.size(),
          {repeatAgreement(everyDevice(first), everyDevice(second)),
           repeatAgreement(slowest(first), slowest(second))}};
}

} // namespace

EvaluationTable neuroshard::makeCommunicationTable() {
  return {{"devices", "slowest"}, {}};
}

EvaluationRow neuroshard::makeRow(std::string subject,
                                  const ExchangeTimes &predicted,
                                  const ExchangeTimes &measured) {
  return {std::move(subject),
          measured.size(),
          {agreement(everyDevice(predicted), everyDevice(measured)),
           agreement(slowest(predicted), slowest(measured))}};
}

ExchangeTimes neuroshard::predictSamples(const CommunicationModel &model,
                                         const CommunicationSamples &samples,
                                         std::span<const size_t> indices) {
  ExchangeTimes times;
  for (size_t i : indices) {
    const CommunicationSample &sample = samples.samples[i];
    times.push_back(model.timesMs(samples.trafficOf(sample), sample.skewsMs,
                                  sample.direction));
  }
  return times;
}

std::vector<EvaluationRow>
neuroshard::evaluateModel(const CommunicationModel &model,
                          const CommunicationSamples &samples,
                          const Split &split) {
  ExchangeTimes predicted = predictSamples(model, samples, split.heldOut);
  ExchangeTimes measured = measuredTimes(samples, split.heldOut);
  std::set<int> trained = trainedCounts(samples, split);
  Groups known, counts, directions;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const CommunicationSample &sample = samples.samples[split.heldOut[i]];
    int devices = devicesOf(sample);
    known.add(trained.contains(devices) ? "numbers of devices in training"
                                        : "numbers of devices left out",
              predicted[i], measured[i]);
    counts.add(deviceCountText(devices), predicted[i], measured[i]);
    directions.add(std::string(directionName(sample.direction)), predicted[i],
                   measured[i]);
  }
  std::vector<EvaluationRow> rows = {makeRow("model", predicted, measured)};
  for (const Groups *groups : {&known, &counts, &directions})
    for (EvaluationRow &row : groups->rows("model, "))
      rows.push_back(std::move(row));
  return rows;
}

std::optional<JudgedInterval>
neuroshard::intervalOf(const CommunicationModel &model,
                       const CommunicationSamples &samples,
                       std::span<const size_t> heldOut) {
  auto ratiosOf = [&](std::span<const size_t> indices) {
    std::vector<double> predicted =
        everyDevice(predictSamples(model, samples, indices));
    std::vector<double> ratios = everyDevice(measuredTimes(samples, indices));
    for (size_t i = 0; i < ratios.size(); ++i)
      ratios[i] /= predicted[i];
    return ratios;
  };
  return judgeInterval(rolesOf(samples, {}), heldOut, ratiosOf);
}

std::vector<EvaluationRow>
neuroshard::repeatFloors(const CommunicationSamples &samples) {
  std::map<std::string, std::pair<ExchangeTimes, ExchangeTimes>> groups;
  for (const CommunicationSample &sample : samples.samples) {
    if (sample.repeatOf < 0)
      continue;
    const CommunicationSample &origin =
        samples.samples[static_cast<size_t>(sample.repeatOf)];
    std::vector<std::string> subjects = {
        "repeats, all", "repeats, " + deviceCountText(devicesOf(sample))};
    if (sample.heldOut)
      subjects.push_back("repeats, held out");
    for (const std::string &subject : subjects) {
      groups[subject].first.push_back(origin.timesMs);
      groups[subject].second.push_back(sample.timesMs);
    }
  }
  std::vector<EvaluationRow> rows;
  for (const auto &[subject, times] : groups)
    rows.push_back(makeRepeatRow(subject, times.first, times.second));
  return rows;
}

EvaluationRow
neuroshard::evaluateClosedForm(const CommunicationSamples &samples,
                               const Split &split) {
  ExchangeTimes predicted;
  for (size_t i : split.heldOut) {
    const CommunicationSample &sample = samples.samples[i];
    Traffic traffic = samples.trafficOf(sample);
    CommunicationFeatures features = featurizeExchange(
        traffic, traffic.topology->levels, sample.skewsMs, sample.direction);
    std::vector<double> &times = predicted.emplace_back();
    for (size_t d = 0; d < features.deviceCount(); ++d)
      times.push_back(features.waitMs[d] + features.closedFormMs[d]);
  }
  return makeRow("closed form, fitted links", predicted,
                 measuredTimes(samples, split.heldOut));
}
