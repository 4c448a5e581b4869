//===- ComposedModel.cpp - One cost model made of trained ones ---------===//

#include "ModelRemarks.h"

#include "neuroshard/CostModel/Roofline.h"

#include <algorithm>
#include <map>

using namespace neuroshard;

namespace {

/// The compute model of a device class, or null. Of a class whose kernels are
/// like another's it is the other's, before its times are scaled.
const NeuralCompute *computeFor(const ModelParts &parts,
                                std::string_view deviceClass) {
  for (const ComputePart &part : parts.compute)
    if (part.model->deviceClass() == deviceClass)
      return part.model.get();
  return nullptr;
}

bool isScaled(const DeviceClass &deviceClass) {
  return &deviceClass.kernels() != &deviceClass;
}

/// A shard's embedding by the model of its device class, padded with zeros to
/// the size of the largest model.
class ComposedEmbedding final : public SumEmbedding {
public:
  ComposedEmbedding(const ModelParts &parts, const SumEmbedding &fallback)
      : parts(parts), fallback(fallback), width(fallback.size()) {
    for (const ComputePart &part : parts.compute)
      width = std::max(width, part.model->size());
  }

  int size() const override { return width; }

  void embed(const ShardWork &shard, const DeviceClass &deviceClass,
             std::span<double> out) const override {
    const SumEmbedding &model = modelFor(deviceClass);
    size_t used = static_cast<size_t>(model.size());
    model.embed(shard, deviceClass, out.first(used));
    std::fill(out.begin() + static_cast<ptrdiff_t>(used), out.end(), 0.0);
  }

  ComputeMs head(std::span<const double> sum, int shardCount,
                 const DeviceClass &deviceClass) const override {
    const NeuralCompute *neural = computeFor(parts, deviceClass.kernels().name);
    if (!neural)
      return fallback.head(sum.first(static_cast<size_t>(fallback.size())),
                           shardCount, deviceClass);
    ComputeMs ms = neural->head(sum.first(static_cast<size_t>(neural->size())),
                                shardCount, deviceClass);
    return isScaled(deviceClass) ? scaled(ms, deviceClass.kernelScale) : ms;
  }

  void heads(std::span<const double> sums, std::span<const int> shardCounts,
             const DeviceClass &deviceClass,
             std::span<ComputeMs> out) const override {
    const NeuralCompute *model = computeFor(parts, deviceClass.kernels().name);
    if (!model)
      return SumEmbedding::heads(sums, shardCounts, deviceClass, out);
    model->heads(sums, static_cast<size_t>(width), shardCounts, out);
    if (isScaled(deviceClass))
      for (ComputeMs &ms : out)
        ms = scaled(ms, deviceClass.kernelScale);
  }

private:
  const SumEmbedding &modelFor(const DeviceClass &deviceClass) const {
    const NeuralCompute *model = computeFor(parts, deviceClass.kernels().name);
    return model ? *model : fallback;
  }

  const ModelParts &parts;
  const SumEmbedding &fallback;
  int width;
};

class ComposedModel final : public CostModel {
public:
  explicit ComposedModel(ModelParts chosen)
      : parts(std::move(chosen)), roofline(makeRooflineModel()),
        embedding(parts, *roofline->sumEmbedding()) {}

  std::string name() const override;
  const SumEmbedding *sumEmbedding() const override { return &embedding; }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override;

  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override {
    return parts.communication.empty()
               ? roofline->communicationMs(traffic, startSkewsMs, direction)
               : parts.communication[0].model->timesMs(traffic, startSkewsMs,
                                                       direction);
  }

  std::vector<double> arrivalsMs(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 double evenMs,
                                 Direction direction) const override {
    return roofline->arrivalsMs(traffic, startsMs, evenMs, direction);
  }

  std::vector<std::string> remarks(std::span<const ShardSet> sets,
                                   const Topology &topology) const override {
    return remarksOn(parts, sets, topology);
  }

  PredictionInterval
  computeInterval(const DeviceClass &deviceClass) const override {
    const NeuralCompute *model = computeFor(parts, deviceClass.name);
    return model ? model->interval() : PredictionInterval{};
  }

  PredictionInterval communicationInterval() const override {
    return parts.communication.empty()
               ? PredictionInterval{}
               : parts.communication[0].model->interval();
  }

  CostBound lowerBound(std::span<const BoundTable> tables,
                       const Topology &topology) const override;

private:
  ModelParts parts;
  std::unique_ptr<CostModel> roofline;
  ComposedEmbedding embedding;
};

std::string ComposedModel::name() const {
  if (parts.compute.empty() && parts.communication.empty())
    return roofline->name();
  std::string name;
  for (const ComputePart &part : parts.compute)
    name += (name.empty() ? "" : "+") + part.name;
  if (parts.compute.empty())
    name = roofline->name();
  return name + "+" +
         (parts.communication.empty() ? roofline->name()
                                      : parts.communication[0].name);
}

/// Sums the embeddings of each set, then evaluates all heads of a device class
/// at once. The result has the same bits as the incremental form.
void ComposedModel::computeMs(std::span<const ShardSet> sets,
                              std::span<ComputeMs> out) const {
  std::map<std::string_view, std::vector<size_t>> setsOfClass;
  for (size_t i = 0; i < sets.size(); ++i)
    setsOfClass[sets[i].deviceClass->name].push_back(i);
  size_t width = static_cast<size_t>(embedding.size());
  std::vector<double> one(width);
  for (const auto &[name, indices] : setsOfClass) {
    const DeviceClass &deviceClass = *sets[indices[0]].deviceClass;
    std::vector<double> sums(indices.size() * width);
    std::vector<int> counts;
    for (size_t row = 0; row < indices.size(); ++row) {
      const ShardSet &set = sets[indices[row]];
      counts.push_back(static_cast<int>(set.shards.size()));
      for (const ShardWork *shard : set.shards) {
        embedding.embed(*shard, deviceClass, one);
        for (size_t k = 0; k < width; ++k)
          sums[row * width + k] += one[k];
      }
    }
    std::vector<ComputeMs> times(indices.size());
    embedding.heads(sums, counts, deviceClass, times);
    for (size_t row = 0; row < indices.size(); ++row)
      out[indices[row]] = times[row];
  }
}

/// Networks have no lower bound; the closed form's holds where it predicts.
CostBound ComposedModel::lowerBound(std::span<const BoundTable> tables,
                                    const Topology &topology) const {
  CostBound bound = roofline->lowerBound(tables, topology);
  bool neuralCompute =
      std::any_of(topology.devices.begin(), topology.devices.end(),
                  [&](const Device &device) {
                    const DeviceClass *known =
                        findDeviceClass(topology, device.deviceClass);
                    return computeFor(parts, known->kernels().name) != nullptr;
                  });
  if (neuralCompute)
    bound.maxForwardMs = bound.maxBackwardMs = bound.maxTotalMs = 0;
  if (!parts.communication.empty())
    bound.minCommunicationMs = bound.maxInputMs =
        bound.maxForwardCommunicationMs = bound.maxBackwardCommunicationMs = 0;
  if (neuralCompute || !parts.communication.empty())
    bound.maxForwardSendMs = bound.maxReceiveBackwardMs = 0;
  return bound;
}

} // namespace

std::unique_ptr<CostModel> neuroshard::composeModel(ModelParts parts) {
  return std::make_unique<ComposedModel>(std::move(parts));
}
