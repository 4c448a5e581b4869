//===- PublishedCommunicationNetwork.cpp - The paper's network ------------===//

#include "PublishedCommunicationNetwork.h"

#include "Layers/TrainingLoop.h"

#include <ATen/Parallel.h>

using namespace neuroshard;

double neuroshard::fitRegression(DenseStack &layers,
                                 const RegressionData &training,
                                 const RegressionData &validation,
                                 const FitOptions &options) {
  at::set_num_threads(1);
  std::vector<torch::Tensor> parameters = toTensors(layers);
  torch::Tensor x = toMatrix(training.x, training.inputs);
  torch::Tensor y = toMatrix(training.y, training.outputs);
  torch::Tensor heldX = toMatrix(validation.x, validation.inputs);
  torch::Tensor heldY = toMatrix(validation.y, validation.outputs);
  FitOptions loop = options;
  loop.constantRate = true;
  double best = optimise(
      parameters, static_cast<size_t>(x.size(0)), loop,
      [&](std::span<const int64_t> indices) {
        torch::Tensor rows = toIndex(indices);
        return torch::mse_loss(applyLayers(parameters, x.index_select(0, rows)),
                               y.index_select(0, rows));
      },
      [&] {
        return torch::mse_loss(applyLayers(parameters, heldX), heldY)
            .item<double>();
      });
  layers = toDense(parameters);
  return best;
}

std::vector<float> neuroshard::predictRegression(const DenseStack &layers,
                                                 const RegressionData &data) {
  torch::NoGradGuard noGradients;
  at::set_num_threads(1);
  torch::Tensor result =
      applyLayers(toTensors(layers), toMatrix(data.x, data.inputs))
          .contiguous();
  const float *values = result.const_data_ptr<float>();
  return {values, values + result.numel()};
}
