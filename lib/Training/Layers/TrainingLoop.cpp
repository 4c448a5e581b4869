//===- TrainingLoop.cpp - Minibatch training with early stopping ----------===//

#include "TrainingLoop.h"
#include "neuroshard/Support/Random.h"

#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

using namespace neuroshard;

namespace {

/// Training ends after this share of the epochs without a better validation
/// loss.
constexpr double kPatience = 0.3;

/// Factor of the learning rate at a step.
double rateAt(const FitOptions &options, double step, double steps) {
  if (options.constantRate)
    return 1;
  double rise = std::max(1.0, 0.02 * steps);
  if (step < rise)
    return (step + 1) / rise;
  double done = (step - rise) / std::max(1.0, steps - rise);
  return 0.01 + 0.99 * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

std::vector<torch::Tensor> copyOf(const std::vector<torch::Tensor> &tensors) {
  std::vector<torch::Tensor> copy;
  for (const torch::Tensor &tensor : tensors)
    copy.push_back(tensor.detach().clone());
  return copy;
}

} // namespace

double neuroshard::optimise(
    std::vector<torch::Tensor> &parameters, size_t samples,
    const FitOptions &options,
    const std::function<torch::Tensor(std::span<const int64_t>)> &loss,
    const std::function<double()> &validate) {
  torch::optim::AdamW optimizer(parameters,
                                torch::optim::AdamWOptions(options.learningRate)
                                    .weight_decay(options.weightDecay));
  MersenneTwister random(options.seed);
  std::vector<int64_t> order(samples);
  std::iota(order.begin(), order.end(), int64_t{0});
  size_t batch = static_cast<size_t>(options.batch);
  size_t batches = (samples + batch - 1) / batch;
  double steps =
      static_cast<double>(batches) * static_cast<double>(options.epochs);

  auto validated = [&] {
    torch::NoGradGuard noGradients;
    return validate();
  };
  double best = validated();
  std::vector<torch::Tensor> bestParameters = copyOf(parameters);
  int64_t bestEpoch = 0;
  double step = 0;
  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    random.shuffle(order);
    for (size_t begin = 0; begin < samples; begin += batch, ++step) {
      size_t count = std::min(batch, samples - begin);
      for (auto &group : optimizer.param_groups())
        group.options().set_lr(options.learningRate *
                               rateAt(options, step, steps));
      optimizer.zero_grad();
      loss(std::span(order).subspan(begin, count)).backward();
      optimizer.step();
    }
    double now = validated();
    if (now < best) {
      best = now;
      bestParameters = copyOf(parameters);
      bestEpoch = epoch;
    }
    if (options.progress)
      options.progress(epoch, best);
    if (static_cast<double>(epoch - bestEpoch) >
        kPatience * static_cast<double>(options.epochs))
      break;
  }
  torch::NoGradGuard noGradients;
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i].copy_(bestParameters[i]);
  return best;
}

std::vector<torch::Tensor> neuroshard::toTensors(const DenseStack &stack) {
  std::vector<torch::Tensor> tensors;
  for (const DenseLayer &layer : stack) {
    tensors.push_back(toMatrix(layer.weight, layer.in));
    tensors.push_back(toMatrix(layer.bias, layer.out).reshape({-1}));
  }
  for (torch::Tensor &tensor : tensors)
    tensor.set_requires_grad(true);
  return tensors;
}

DenseStack neuroshard::toDense(std::span<const torch::Tensor> tensors) {
  auto values = [](const torch::Tensor &tensor) {
    torch::Tensor plain = tensor.detach().contiguous();
    const float *data = plain.const_data_ptr<float>();
    return std::vector<float>(data, data + plain.numel());
  };
  DenseStack stack;
  for (size_t i = 0; i + 1 < tensors.size(); i += 2)
    stack.push_back({tensors[i].size(1), tensors[i].size(0), values(tensors[i]),
                     values(tensors[i + 1])});
  return stack;
}

torch::Tensor neuroshard::applyLayers(std::span<const torch::Tensor> layers,
                                      torch::Tensor input) {
  for (size_t i = 0; i + 1 < layers.size(); i += 2) {
    if (i > 0)
      input = torch::relu(input);
    input = torch::addmm(layers[i + 1], input, layers[i].t());
  }
  return input;
}

torch::Tensor neuroshard::toMatrix(std::span<const float> values,
                                   int64_t columns) {
  int64_t rows =
      static_cast<int64_t>(values.size()) / std::max<int64_t>(1, columns);
  torch::Tensor matrix = torch::empty({rows, columns}, torch::kFloat32);
  std::copy(values.begin(), values.end(), matrix.mutable_data_ptr<float>());
  return matrix;
}

torch::Tensor neuroshard::toIndex(std::span<const int64_t> values) {
  torch::Tensor index =
      torch::empty({static_cast<int64_t>(values.size())}, torch::kInt64);
  std::copy(values.begin(), values.end(), index.mutable_data_ptr<int64_t>());
  return index;
}
