//===- CostModel.cpp - A library with cost models of its own --------------===//
//
// "bytes" prices bytes alone. The others answer what no model may.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/CostModel/Plugin.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

using namespace neuroshard;

namespace {

/// Time of bytes over bandwidths: of memory for lookups and updates, of the
/// innermost link for exchanges.
class BytesModel : public CostModel {
public:
  std::string name() const override { return "bytes"; }

  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    for (size_t i = 0; i < sets.size(); ++i) {
      double forward = 0, backward = 0;
      for (const ShardWork *shard : sets[i].shards) {
        double rowBytes = 4.0 * static_cast<double>(shard->width);
        forward += shard->lookups * rowBytes;
        backward += 3 * shard->updateUniqueRows * rowBytes;
      }
      double bytesPerMs = sets[i].shards.empty()
                              ? 1
                              : sets[i].deviceClass->memoryBandwidthGBps * 1e6;
      out[i] = {forward / bytesPerMs, backward / bytesPerMs};
    }
  }

  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction) const override {
    double bytesPerMs = traffic.topology->levels.back().bandwidthGBps * 1e6;
    std::vector<double> out = traffic.allBytesOut(), in = traffic.allBytesIn();
    double last = startSkewsMs.empty() ? 0 : std::ranges::max(startSkewsMs);
    std::vector<double> times(out.size());
    for (size_t i = 0; i < times.size(); ++i)
      times[i] = std::max(out[i], in[i]) / bytesPerMs +
                 (startSkewsMs.empty() ? 0 : last - startSkewsMs[i]);
    return times;
  }
};

/// The same, but for one kind of answer.
class WrongModel final : public BytesModel {
public:
  enum Kind { Nan, Negative, Missing, FewDevices, Throws };

  explicit WrongModel(Kind kind) : kind(kind) {}

  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    if (kind == Throws)
      throw std::runtime_error("no licence");
    if (kind == Missing)
      return;
    BytesModel::computeMs(sets, out);
    if (kind == Nan)
      out[0].forwardMs = std::nan("");
    if (kind == Negative)
      out[0].backwardMs = -1.5;
  }

  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override {
    std::vector<double> times =
        BytesModel::communicationMs(traffic, startSkewsMs, direction);
    if (kind == FewDevices)
      times.pop_back();
    return times;
  }

private:
  Kind kind;
};

CostModelMaker makerOf(WrongModel::Kind kind) {
  return
      [kind](const Topology &) { return std::make_unique<WrongModel>(kind); };
}

void addModels(CostModelRegistry &registry) {
  registry.add(
      "bytes",
      [](const Topology &topology) -> Expected<std::unique_ptr<CostModel>> {
        if (topology.devices.size() > 64)
          return failure("topology", "expected at most 64 devices");
        return std::make_unique<BytesModel>();
      });
  registry.add("wrong.nan", makerOf(WrongModel::Nan));
  registry.add("wrong.negative", makerOf(WrongModel::Negative));
  registry.add("wrong.missing", makerOf(WrongModel::Missing));
  registry.add("wrong.devices", makerOf(WrongModel::FewDevices));
  registry.add("wrong.throws", makerOf(WrongModel::Throws));
}

} // namespace

const CostModelPlugin *neuroshardCostModelPlugin() {
  static const CostModelPlugin plugin{costModelPluginVersion(), addModels};
  return &plugin;
}
