//===- ModelRemarks.cpp - Remarks on weak predictions ---------------------===//

#include "ModelRemarks.h"

#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace neuroshard;

namespace {

/// Features named in one remark; the rest are counted.
constexpr size_t kMostFeatures = 3;
/// Tolerance of ranges for values rounded to f32.
constexpr float kSlack = 1e-4f;

std::string percent(double share) {
  return share < 10 ? std::to_string(std::lround(share * 100)) + " %"
                    : "over 1000 %";
}

/// How a feature of some shards leaves the training range.
struct Excess {
  int feature = 0;
  float low = 0, high = 0;
  /// Largest distance to the range, in widths of it, and the value there.
  float distance = 0, value = 0;
};

/// Features of shards that problems and plans state, in their words. All
/// others are derived from these.
constexpr std::pair<std::string_view, std::string_view> kStated[] = {
    {"log_rows", "rows"},
    {"log_width", "columns"},
    {"log_batch", "samples of a batch"},
    {"log_pooling", "ids per sample"},
    {"log_features", "features of a table"},
    {"log_unique_rows", "distinct rows of a batch"},
    {"row_split", "a cut by rows"},
    {"replicated", "copies on all devices"}};

/// In words of kStated; empty for a derived one.
std::string_view statedAs(int feature) {
  for (auto [name, words] : kStated)
    if (featureNames()[static_cast<size_t>(feature)] == name)
      return words;
  return {};
}

/// "4e+07 rows (trained on 100 to 1e+06)"; "copies on all devices".
std::string describeExcess(const Excess &excess) {
  std::string words(statedAs(excess.feature));
  if (excess.low == excess.high)
    return words;
  return featureValueText(excess.feature, excess.value) + " " + words +
         " (trained on " + featureValueText(excess.feature, excess.low) +
         " to " + featureValueText(excess.feature, excess.high) + ")";
}

/// Whether the feature says how often ids repeat.
bool isReuse(int feature) {
  std::string_view name = featureNames()[static_cast<size_t>(feature)];
  return name.starts_with("reuse_") || name.starts_with("lookups_reused_");
}

/// Whether the workload says how often ids repeat, of models that know it.
bool isReuseMissing(std::span<const Excess> excesses) {
  return std::any_of(excesses.begin(), excesses.end(), [](const Excess &one) {
    return featureNames()[static_cast<size_t>(one.feature)] == "reuse_known" &&
           one.distance > 0 && one.value == 0;
  });
}

/// Looks at the shards on the devices of one class.
class ClassRemarks {
public:
  ClassRemarks(const ComputePart &part, std::span<const ShardSet> sets)
      : part(part), model(*part.model) {
    for (int i = 0; i < kFeatureCount; ++i) {
      auto [low, high] = model.rangeOf(i);
      excesses.push_back({i, low, high, 0, 0});
    }
    for (size_t device = 0; device < sets.size(); ++device)
      if (sets[device].deviceClass->kernels().name == model.deviceClass())
        look(sets[device], device);
  }

  void addTo(std::vector<std::string> &remarks) {
    if (isReuseMissing(excesses))
      remarks.push_back(
          "the workload does not say how often ids repeat in a batch, which "
          "model '" +
          part.name +
          "' was trained with: 'neuroshard profile' measures it in batches");
    if (outside)
      remarks.push_back(rangeRemark());
    if (onHost)
      remarks.push_back(
          "model '" + part.name + "' knows no host memory: it takes " +
          std::to_string(onHost) + " shards there for shards in device memory");
    if (mostShards > model.maxShards() && model.maxShards() > 0)
      remarks.push_back("model '" + part.name + "' was trained on at most " +
                        std::to_string(model.maxShards()) +
                        " shards per device; the plan " + "has up to " +
                        std::to_string(mostShards));
    if (uncertainty > kNotableDisagreement)
      remarks.push_back("the members of model '" + part.name +
                        "' disagree by " + percent(std::expm1(uncertainty)) +
                        " on device " + std::to_string(uncertainDevice) +
                        ": its predicted compute is uncertain");
  }

private:
  void look(const ShardSet &set, size_t device) {
    std::vector<double> sum(static_cast<size_t>(model.size())), one(sum);
    for (const ShardWork *shard : set.shards) {
      lookAtFeatures(*shard);
      model.embed(*shard, *set.deviceClass, one);
      for (size_t k = 0; k < sum.size(); ++k)
        sum[k] += one[k];
    }
    int64_t count = static_cast<int64_t>(set.shards.size());
    mostShards = std::max(mostShards, count);
    double spread = model.uncertainty(sum, static_cast<int>(count));
    if (spread > uncertainty) {
      uncertainty = spread;
      uncertainDevice = device;
    }
  }

  void lookAtFeatures(const ShardWork &shard) {
    std::array<float, kFeatureCount> values;
    featurize(shard, values);
    bool isOutside = false;
    for (Excess &excess : excesses) {
      float value = values[static_cast<size_t>(excess.feature)];
      float beyond = std::max(excess.low - value, value - excess.high);
      if (beyond <= kSlack)
        continue;
      isOutside = isOutside || !isReuse(excess.feature);
      float range = std::max(excess.high - excess.low, kSlack);
      if (beyond / range <= excess.distance)
        continue;
      excess.distance = beyond / range;
      excess.value = value;
    }
    ++shards;
    outside += isOutside;
    onHost += shard.hostRows > 0;
  }

  std::string rangeRemark() {
    std::erase_if(excesses, [](const Excess &e) {
      return e.distance == 0 || statedAs(e.feature).empty();
    });
    std::stable_sort(excesses.begin(), excesses.end(),
                     [](const Excess &a, const Excess &b) {
                       return a.distance > b.distance;
                     });
    std::string text =
        std::to_string(outside) + " of " + std::to_string(shards) +
        " shards are unlike those that " + "model '" + part.name +
        "' was trained on, and their compute is a guess: ";
    if (excesses.empty())
      return text + "in what they read and write";
    for (size_t i = 0; i < std::min(kMostFeatures, excesses.size()); ++i)
      text += (i ? ", " : "") + describeExcess(excesses[i]);
    if (excesses.size() > kMostFeatures)
      text +=
          ", and " + std::to_string(excesses.size() - kMostFeatures) + " more";
    return text;
  }

  const ComputePart &part;
  const NeuralCompute &model;
  std::vector<Excess> excesses;
  int64_t shards = 0, outside = 0, onHost = 0, mostShards = 0;
  double uncertainty = 0;
  size_t uncertainDevice = 0;
};

bool isPredicted(const ModelParts &parts, std::string_view deviceClass) {
  return std::ranges::any_of(parts.compute, [&](const ComputePart &part) {
    return part.model->deviceClass() == deviceClass;
  });
}

/// "0.8 (forward) and 0.7 (backward) times those of H100, as it states".
std::string scaleText(const DeviceClass &deviceClass) {
  return shortestText(deviceClass.kernelScale.forward) + " (forward) and " +
         shortestText(deviceClass.kernelScale.backward) +
         " (backward) times those of " + std::string(deviceClass.like->name) +
         ", as its definition states";
}

/// One line for each class whose compute nobody measured.
std::string unmeasured(const ModelParts &parts, const DeviceClass &known) {
  std::string name(known.name);
  bool isScaled = &known.kernels() != &known;
  if (isPredicted(parts, known.kernels().name))
    return isScaled ? "compute of device class " + name +
                          " was not measured: its times are " + scaleText(known)
                    : "";
  std::string text = "no measured compute model for device class " + name +
                     ": the closed form predicts its compute, ";
  return text + (isScaled ? "with times " + scaleText(known)
                          : "with rates " + sourceText(known.kernelSource));
}

std::string linkRemark(const DeviceClass &known) {
  return "no measured communication model for this topology: the closed form "
         "predicts its exchanges; the default links inside a node are " +
         sourceText(known.linkSource) + ", those between nodes " +
         sourceText(known.networkSource);
}

void addMissing(const ModelParts &parts, const Topology &topology,
                std::vector<std::string> &remarks) {
  if (!parts.missingFolder.empty())
    remarks.push_back("the folder of the shipped cost models is not there: '" +
                      parts.missingFolder +
                      "'; set the environment variable NEUROSHARD_MODELS to "
                      "share/neuroshard/models of an installation, or to "
                      "models of the sources");
  std::set<std::string> classes;
  for (const Device &device : topology.devices)
    classes.insert(device.deviceClass);
  for (const std::string &name : classes)
    if (std::string text = unmeasured(parts, *findDeviceClass(topology, name));
        !text.empty())
      remarks.push_back(std::move(text));
  if (parts.communication.empty() && topology.deviceCount() > 1)
    remarks.push_back(linkRemark(
        *findDeviceClass(topology, topology.devices[0].deviceClass)));
}

void addSimulated(const ModelParts &parts, std::vector<std::string> &remarks) {
  auto add = [&](const auto &part) {
    if (!part.model->measured())
      remarks.push_back("model '" + part.name +
                        "' was trained on simulated times, not on measured "
                        "ones");
  };
  std::for_each(parts.compute.begin(), parts.compute.end(), add);
  std::for_each(parts.communication.begin(), parts.communication.end(), add);
}

} // namespace

std::vector<std::string> neuroshard::remarksOn(const ModelParts &parts,
                                               std::span<const ShardSet> sets,
                                               const Topology &topology) {
  std::vector<std::string> remarks;
  addMissing(parts, topology, remarks);
  addSimulated(parts, remarks);
  for (const ComputePart &part : parts.compute)
    ClassRemarks(part, sets).addTo(remarks);
  for (const CommunicationPart &part : parts.communication)
    for (std::string &remark : part.model->remarks(sets, topology))
      remarks.push_back(std::move(remark));
  return remarks;
}
