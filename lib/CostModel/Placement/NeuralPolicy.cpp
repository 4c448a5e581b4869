//===- NeuralPolicy.cpp - Inference of placement policies -----------------===//

#include "neuroshard/CostModel/NeuralPolicy.h"

#include "Layers/DenseLayers.h"

#include <algorithm>

using namespace neuroshard;

namespace {

void standardise(const FeatureScale &scale, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = standardiseFeature(scale, i, values[i]);
}

/// Dense layers with ReLU between them.
class Stack {
public:
  explicit Stack(std::span<const DenseLayer> layers) {
    for (const DenseLayer &layer : layers)
      packed.emplace_back(layer);
  }

  size_t outputs() const { return packed.back().out; }

  /// The outputs, in one of the two buffers of kMaxLayerWidth.
  const float *apply(InstructionSet instructions, const float *input,
                     float *buffer, float *other) const {
    for (size_t i = 0; i < packed.size(); ++i) {
      dense::affine(instructions, packed[i], input, buffer);
      for (size_t o = 0; i + 1 < packed.size() && o < packed[i].out; ++o)
        buffer[o] = std::max(buffer[o], 0.0f);
      input = buffer;
      std::swap(buffer, other);
    }
    return input;
  }

private:
  std::vector<dense::PackedLayer> packed;
};

struct Network {
  explicit Network(const PlacementPolicyParameters &parameters)
      : tableScale(parameters.tableScale), deviceScale(parameters.deviceScale),
        table(parameters.table), head(parameters.head) {}

  FeatureScale tableScale, deviceScale;
  Stack table, head;
  InstructionSet instructions = widestInstructionSet();
};

class Player final : public PlacementPlayer {
public:
  Player(const Network &network, const PlacementTask &task)
      : network(network), task(task), scale(task),
        size(network.table.outputs()), input(3 * size + kPlacementFeatureCount),
        features(static_cast<size_t>(task.deviceCount) *
                 kPlacementFeatureCount) {
    for (const PlacementPiece &piece : task.pieces)
      embed(piece);
    reset();
  }

  void reset() override;
  void placed(size_t piece, int device) override;
  void scores(size_t piece, std::span<const PlacementDevice> devices,
              std::span<float> out) override;

private:
  void embed(const PlacementPiece &piece);
  const double *embeddingOf(size_t piece) const {
    return embeddings.data() + piece * size;
  }

  const Network &network;
  const PlacementTask task;
  PlacementScale scale;
  const size_t size;
  /// Pieces x size; devices x size; size: of the pieces still to come.
  std::vector<double> embeddings, sums, rest;
  std::vector<bool> isPlaced;
  std::vector<float> input, features;
};

void Player::embed(const PlacementPiece &piece) {
  alignas(64) float table[kFeatureCount];
  alignas(64) float a[kMaxLayerWidth], b[kMaxLayerWidth];
  std::vector<double> sum(size);
  for (const ShardWork *work : piece.works) {
    featurize(*work, table);
    standardise(network.tableScale, table);
    const float *out = network.table.apply(network.instructions, table, a, b);
    for (size_t k = 0; k < size; ++k)
      sum[k] += out[k];
  }
  embeddings.insert(embeddings.end(), sum.begin(), sum.end());
}

void Player::reset() {
  scale.reset();
  sums.assign(static_cast<size_t>(task.deviceCount) * size, 0);
  rest.assign(size, 0);
  isPlaced.assign(task.pieces.size(), false);
  for (size_t piece = 0; piece < task.pieces.size(); ++piece)
    for (size_t k = 0; k < size; ++k)
      rest[k] += embeddingOf(piece)[k];
}

void Player::placed(size_t piece, int device) {
  scale.placed(piece);
  double *sum = sums.data() + static_cast<size_t>(device) * size;
  for (size_t k = 0; k < size; ++k) {
    sum[k] += embeddingOf(piece)[k];
    if (!isPlaced[piece])
      rest[k] -= embeddingOf(piece)[k];
  }
  isPlaced[piece] = true;
}

void Player::scores(size_t piece, std::span<const PlacementDevice> devices,
                    std::span<float> out) {
  alignas(64) float a[kMaxLayerWidth], b[kMaxLayerWidth];
  scale.featurize(piece, devices, features);
  double share = static_cast<double>(task.deviceCount) /
                 static_cast<double>(task.pieces.size());
  double left = static_cast<double>(std::max<size_t>(1, scale.left()));
  for (size_t k = 0; k < size; ++k) {
    input[size + k] = static_cast<float>(embeddingOf(piece)[k]);
    input[2 * size + k] = static_cast<float>(rest[k] / left);
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    out[d] = 0;
    if (!devices[d].admits)
      continue;
    for (size_t k = 0; k < size; ++k)
      input[k] = static_cast<float>(share * sums[d * size + k]);
    auto own = std::span(input).subspan(3 * size);
    std::copy_n(features.begin() +
                    static_cast<std::ptrdiff_t>(d * kPlacementFeatureCount),
                kPlacementFeatureCount, own.begin());
    standardise(network.deviceScale, own);
    out[d] = network.head.apply(network.instructions, input.data(), a, b)[0];
  }
}

class NeuralPlacement final : public PlacementPolicy {
public:
  NeuralPlacement(const PlacementPolicyParameters &parameters, std::string name)
      : network(parameters), ownName(std::move(name)) {}

  std::string name() const override { return ownName; }
  std::unique_ptr<PlacementPlayer>
  play(const PlacementTask &task) const override {
    return std::make_unique<Player>(network, task);
  }

private:
  Network network;
  std::string ownName;
};

} // namespace

std::unique_ptr<PlacementPolicy>
neuroshard::makePlacementPolicy(const PlacementPolicyParameters &parameters,
                                std::string name) {
  return std::make_unique<NeuralPlacement>(parameters, std::move(name));
}
