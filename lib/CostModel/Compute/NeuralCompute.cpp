//===- NeuralCompute.cpp - Inference of compute models --------------------===//

#include "neuroshard/CostModel/NeuralCompute.h"

#include "Layers/DenseLayers.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

constexpr size_t kBlockRows = dense::kBlockRows;

/// exp(x) times `factor`, rounded to a multiple of kShardMsUnit and at most
/// kMaxShardMs, which NaN becomes too.
double positiveTerm(float x, double factor) {
  double term = std::exp(static_cast<double>(x)) * factor;
  if (!(term < kMaxShardMs))
    return kMaxShardMs;
  return std::nearbyint(term / kShardMsUnit) * kShardMsUnit;
}

/// A member whose weights are laid out for inference.
struct PackedNetwork {
  explicit PackedNetwork(const NeuralComputeMember &member)
      : table{dense::PackedLayer(member.table[0]),
              dense::PackedLayer(member.table[1]),
              dense::PackedLayer(member.table[2])},
        head(member.head) {}

  std::array<dense::PackedLayer, 3> table;
  dense::PackedHead head;
};

void rectify(float *values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = values[i] > 0 ? values[i] : 0;
}

} // namespace

struct NeuralCompute::State {
  NeuralComputeParameters parameters;
  std::vector<PackedNetwork> members;
  size_t sums = 0;
  /// countsWork() of each feature.
  std::array<bool, kFeatureCount> work;
  InstructionSet instructions = widestInstructionSet();

  /// Clamps and standardises the features. Returns the factor by which the
  /// work is beyond the clamped features.
  double standardize(float *features) const;
  /// Log forward, then log backward, of up to kBlockRows rows, by member.
  void memberLogs(const double *rows, size_t stride, size_t count,
                  float *logs) const;
  void headBlock(const double *rows, size_t stride, const int *shardCounts,
                 size_t count, ComputeMs *out) const;
};

double NeuralCompute::State::standardize(float *features) const {
  const FeatureScale &scale = parameters.features;
  float beyond = 0;
  for (size_t i = 0; i < kFeatureCount; ++i) {
    float value = clampFeature(scale, i, features[i]);
    if (work[i])
      beyond = std::max(beyond, features[i] - value);
    features[i] = standardiseClamped(scale, i, value);
  }
  return std::exp(static_cast<double>(beyond));
}

void NeuralCompute::State::memberLogs(const double *rows, size_t stride,
                                      size_t count, float *logs) const {
  for (size_t m = 0; m < members.size(); ++m)
    dense::headRows(instructions, members[m].head, rows + m * sums, stride,
                    count, logs + m * 2 * kBlockRows);
}

void NeuralCompute::State::headBlock(const double *rows, size_t stride,
                                     const int *shardCounts, size_t count,
                                     ComputeMs *out) const {
  alignas(64) float logs[kMaxMembers * 2 * kBlockRows];
  memberLogs(rows, stride, count, logs);
  // The geometric mean of the members.
  float scale = 1.0f / static_cast<float>(members.size());
  for (size_t o = 0; o < 2; ++o)
    for (size_t r = 0; r < count; ++r) {
      float sum = 0;
      for (size_t m = 0; m < members.size(); ++m)
        sum += logs[(m * 2 + o) * kBlockRows + r];
      logs[o * kBlockRows + r] = sum * scale;
    }
  alignas(64) float times[2 * kBlockRows];
  for (size_t o = 0; o < 2; ++o)
    dense::exponentials(instructions, logs + o * kBlockRows, count,
                        times + o * kBlockRows);
  for (size_t r = 0; r < count; ++r)
    out[r] = shardCounts[r] == 0 ? ComputeMs{}
                                 : ComputeMs{times[r], times[kBlockRows + r]};
}

NeuralCompute::NeuralCompute(const NeuralComputeParameters &parameters)
    : state(std::make_unique<State>()) {
  state->parameters = parameters;
  for (const NeuralComputeMember &member : parameters.members)
    state->members.emplace_back(member);
  state->sums = state->members[0].head.sums;
  for (int i = 0; i < kFeatureCount; ++i)
    state->work[static_cast<size_t>(i)] = countsWork(i);
}

NeuralCompute::~NeuralCompute() = default;

int NeuralCompute::size() const {
  return static_cast<int>(state->sums * state->members.size());
}

void NeuralCompute::embed(const ShardWork &shard, const DeviceClass &,
                          std::span<double> out) const {
  alignas(64) float features[kFeatureCount];
  alignas(64) float a[kMaxLayerWidth], b[kMaxLayerWidth];
  featurize(shard, features);
  double factor = state->standardize(features);
  size_t next = 0;
  for (const PackedNetwork &member : state->members) {
    dense::affine(state->instructions, member.table[0], features, a);
    rectify(a, member.table[0].out);
    dense::affine(state->instructions, member.table[1], a, b);
    rectify(b, member.table[1].out);
    dense::affine(state->instructions, member.table[2], b, a);
    for (size_t k = 0; k < state->sums; ++k)
      out[next++] = positiveTerm(a[k], factor);
  }
}

ComputeMs NeuralCompute::head(std::span<const double> sum, int shardCount,
                              const DeviceClass &) const {
  ComputeMs time;
  heads(sum, sum.size(), {&shardCount, 1}, {&time, 1});
  return time;
}

void NeuralCompute::heads(std::span<const double> sums,
                          std::span<const int> shardCounts, const DeviceClass &,
                          std::span<ComputeMs> out) const {
  heads(sums, static_cast<size_t>(size()), shardCounts, out);
}

void NeuralCompute::heads(std::span<const double> sums, size_t stride,
                          std::span<const int> shardCounts,
                          std::span<ComputeMs> out) const {
  for (size_t row = 0; row < shardCounts.size(); row += kBlockRows)
    state->headBlock(
        sums.data() + row * stride, stride, shardCounts.data() + row,
        std::min(kBlockRows, shardCounts.size() - row), out.data() + row);
}

double NeuralCompute::uncertainty(std::span<const double> sum,
                                  int shardCount) const {
  if (shardCount == 0)
    return 0;
  alignas(64) float logs[kMaxMembers * 2 * kBlockRows];
  state->memberLogs(sum.data(), sum.size(), 1, logs);
  double count = static_cast<double>(state->members.size());
  double largest = 0;
  for (size_t o = 0; o < 2; ++o) {
    double mean = 0, squares = 0;
    for (size_t m = 0; m < state->members.size(); ++m)
      mean += logs[(m * 2 + o) * kBlockRows] / count;
    for (size_t m = 0; m < state->members.size(); ++m)
      squares += std::pow(logs[(m * 2 + o) * kBlockRows] - mean, 2);
    largest = std::max(largest, std::sqrt(squares / count));
  }
  return largest;
}

const std::string &NeuralCompute::deviceClass() const {
  return state->parameters.deviceClass;
}

bool NeuralCompute::measured() const { return state->parameters.measured; }

int64_t NeuralCompute::maxShards() const { return state->parameters.maxShards; }

PredictionInterval NeuralCompute::interval() const {
  return state->parameters.interval;
}

std::pair<float, float> NeuralCompute::rangeOf(int feature) const {
  size_t i = static_cast<size_t>(feature);
  return {state->parameters.features.min[i], state->parameters.features.max[i]};
}
