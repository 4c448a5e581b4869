//===- ComputeEvaluation.cpp - Accuracy on measured shard sets ------------===//

#include "neuroshard/Training/ComputeEvaluation.h"

#include "neuroshard/CostModel/Roofline.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace neuroshard;

Expected<const DeviceClass *>
neuroshard::deviceClassOf(const ComputeSamples &samples) {
  auto entry = samples.metadata.find("device_class");
  if (entry == samples.metadata.end())
    return failure("metadata", "expected the entry device_class");
  const DeviceClass *found = findDeviceClass(entry->second);
  if (!found)
    return failure("metadata.device_class",
                   "expected one of " + deviceClassNames() + ", got: '" +
                       entry->second + "'");
  return found;
}

std::vector<SampleRole> neuroshard::rolesOf(const ComputeSamples &samples) {
  std::vector<SampleRole> roles;
  for (const ComputeSample &sample : samples.samples)
    roles.push_back({sample.repeatOf, sample.heldOut});
  return roles;
}

std::vector<ComputeMs>
neuroshard::correctedTimes(const ComputeSamples &samples,
                           std::span<const size_t> indices) {
  std::vector<ComputeMs> times;
  for (size_t i : indices)
    times.push_back(samples.samples[i].corrected);
  return times;
}

std::vector<ComputeMs> neuroshard::predictSamples(
    const SumEmbedding &model, const DeviceClass &deviceClass,
    const ComputeSamples &samples, std::span<const size_t> indices) {
  size_t size = static_cast<size_t>(model.size());
  std::vector<double> sums(indices.size() * size), one(size);
  std::vector<int> counts;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::vector<ShardWork> &shards = samples.samples[indices[i]].shards;
    for (const ShardWork &shard : shards) {
      model.embed(shard, deviceClass, one);
      for (size_t k = 0; k < size; ++k)
        sums[i * size + k] += one[k];
    }
    counts.push_back(static_cast<int>(shards.size()));
  }
  std::vector<ComputeMs> times(indices.size());
  model.heads(sums, counts, deviceClass, times);
  return times;
}

std::vector<EvaluationRow>
neuroshard::repeatFloors(const ComputeSamples &samples) {
  std::vector<EvaluationRow> rows;
  for (bool heldOutOnly : {true, false})
    for (bool corrected : {true, false}) {
      std::vector<ComputeMs> first, second;
      for (const ComputeSample &sample : samples.samples) {
        if (sample.repeatOf < 0 || (heldOutOnly && !sample.heldOut))
          continue;
        const ComputeSample &origin =
            samples.samples[static_cast<size_t>(sample.repeatOf)];
        first.push_back(corrected ? origin.corrected : origin.measured);
        second.push_back(corrected ? sample.corrected : sample.measured);
      }
      if (first.empty())
        continue;
      rows.push_back(makeRow(std::string("repeats") +
                                 (heldOutOnly ? ", held out" : ", all") +
                                 (corrected ? "" : ", not corrected"),
                             first.size(), repeatAgreement(first, second)));
    }
  return rows;
}

namespace {

/// The name all shards share, or "mixed".
template <typename Name>
std::string common(const ComputeSample &sample, Name name) {
  std::string result;
  for (const ShardWork &shard : sample.shards) {
    std::string own(name(shard));
    if (!result.empty() && own != result)
      return "mixed";
    result = own;
  }
  return result;
}

/// One row per value of `key`, in the order of the values.
template <typename Key>
void addGroups(const ComputeSamples &samples, std::span<const size_t> heldOut,
               std::span<const ComputeMs> predicted, Key key,
               std::vector<EvaluationRow> &rows) {
  using Value = decltype(key(samples.samples.front()));
  std::map<Value, std::pair<std::vector<ComputeMs>, std::vector<ComputeMs>>>
      groups;
  for (size_t i = 0; i < heldOut.size(); ++i) {
    const ComputeSample &sample = samples.samples[heldOut[i]];
    auto &[ours, theirs] = groups[key(sample)];
    ours.push_back(predicted[i]);
    theirs.push_back(sample.corrected);
  }
  for (auto &[value, times] : groups)
    rows.push_back(makeRow(value.second, times.first.size(),
                           agreement(times.first, times.second)));
}

double medianRatio(std::span<const ComputeMs> measured,
                   std::span<const ComputeMs> predicted,
                   double ComputeMs::*member) {
  std::vector<double> ratios;
  for (size_t i = 0; i < measured.size(); ++i)
    ratios.push_back(measured[i].*member / predicted[i].*member);
  if (ratios.empty())
    return 1;
  auto middle = ratios.begin() + static_cast<long>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

} // namespace

std::vector<EvaluationRow> neuroshard::evaluateModel(
    const SumEmbedding &model, const DeviceClass &deviceClass,
    const ComputeSamples &samples, std::span<const size_t> heldOut) {
  std::vector<ComputeMs> predicted =
      predictSamples(model, deviceClass, samples, heldOut);
  std::vector<ComputeMs> raw;
  for (size_t i : heldOut)
    raw.push_back(samples.samples[i].measured);
  std::vector<EvaluationRow> rows = {
      makeRow("model", heldOut.size(),
              agreement(predicted, correctedTimes(samples, heldOut))),
      makeRow("model, not corrected", raw.size(), agreement(predicted, raw))};
  // A number first, so that batches come in their order.
  using Key = std::pair<int64_t, std::string>;
  auto batch = [](const ComputeSample &sample) {
    return Key(sample.batch, "model, batch " + std::to_string(sample.batch));
  };
  auto element = [](const ComputeSample &sample) {
    return Key(0, "model, " + common(sample, [](const ShardWork &shard) {
                    return toString(shard.elementType);
                  }));
  };
  auto optimizer = [](const ComputeSample &sample) {
    return Key(0, "model, " + common(sample, [](const ShardWork &shard) {
                    return toString(shard.optimizer);
                  }));
  };
  addGroups(samples, heldOut, predicted, batch, rows);
  addGroups(samples, heldOut, predicted, element, rows);
  addGroups(samples, heldOut, predicted, optimizer, rows);
  return rows;
}

std::optional<JudgedInterval> neuroshard::intervalOf(
    const SumEmbedding &model, const DeviceClass &deviceClass,
    const ComputeSamples &samples, std::span<const size_t> heldOut) {
  auto ratiosOf = [&](std::span<const size_t> indices) {
    std::vector<ComputeMs> predicted =
        predictSamples(model, deviceClass, samples, indices);
    std::vector<double> ratios;
    for (size_t i = 0; i < indices.size(); ++i)
      ratios.push_back(samples.samples[indices[i]].corrected.total() /
                       predicted[i].total());
    return ratios;
  };
  return judgeInterval(rolesOf(samples), heldOut, ratiosOf);
}

std::vector<EvaluationRow>
neuroshard::evaluateRoofline(const DeviceClass &deviceClass,
                             const ComputeSamples &samples,
                             const Split &split) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  std::vector<ComputeMs> training = predictSamples(
      *model->sumEmbedding(), deviceClass, samples, split.training);
  std::vector<ComputeMs> wanted = correctedTimes(samples, split.training);
  double forward = medianRatio(wanted, training, &ComputeMs::forwardMs);
  double backward = medianRatio(wanted, training, &ComputeMs::backwardMs);

  std::vector<ComputeMs> predicted = predictSamples(
      *model->sumEmbedding(), deviceClass, samples, split.heldOut);
  std::vector<ComputeMs> measured = correctedTimes(samples, split.heldOut);
  std::vector<EvaluationRow> rows = {
      makeRow("roofline", measured.size(), agreement(predicted, measured))};
  for (ComputeMs &time : predicted)
    time = {forward * time.forwardMs, backward * time.backwardMs};
  rows.push_back(makeRow("roofline, fitted factors", measured.size(),
                         agreement(predicted, measured)));
  return rows;
}
