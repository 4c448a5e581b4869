//===- CommunicationNetwork.cpp - Communication network in LibTorch -------===//

#include "CommunicationNetwork.h"

#include "Layers/Loss.h"
#include "Layers/TrainingLoop.h"

#include "neuroshard/CostModel/CommunicationModel.h"

#include <ATen/Parallel.h>

#include <numeric>

using namespace neuroshard;

namespace {

/// A device that exchanges nothing takes no time; keeps its logarithm finite.
constexpr double kLeastMs = 1e-6;

/// The devices of some exchanges, and how they see each other.
struct Selection {
  /// Rows of the data; for each the exchange and the group, counted within the
  /// selection.
  std::vector<int64_t> rows, exchange, group;
  /// Exchanges x mostDevices: positions in `rows`, filled up with rows.size().
  std::vector<int64_t> members;
  int64_t mostDevices = 2;
  int64_t exchanges = 0;
  int64_t groups = 0;

  Selection(const ExchangeData &data, std::span<const int64_t> indices) {
    for (int64_t index : indices)
      add(data, static_cast<size_t>(index));
    listMembers();
  }

private:
  void add(const ExchangeData &data, size_t index) {
    int64_t begin = data.firstDevice[index];
    int64_t count = data.firstDevice[index + 1] - begin;
    int64_t mostGroup = 0;
    mostDevices = std::max(mostDevices, count);
    for (int64_t d = 0; d < count; ++d) {
      int64_t own = data.group[static_cast<size_t>(begin + d)];
      mostGroup = std::max(mostGroup, own);
      rows.push_back(begin + d);
      exchange.push_back(exchanges);
      group.push_back(groups + own);
    }
    groups += mostGroup + 1;
    ++exchanges;
  }
  void listMembers() {
    members.assign(static_cast<size_t>(exchanges * mostDevices),
                   static_cast<int64_t>(rows.size()));
    int64_t place = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      place = i > 0 && exchange[i] == exchange[i - 1] ? place + 1 : 0;
      members[static_cast<size_t>(exchange[i] * mostDevices + place)] =
          static_cast<int64_t>(i);
    }
  }
};

std::vector<int64_t> allOf(const ExchangeData &data) {
  std::vector<int64_t> all(data.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

torch::Tensor column(std::span<const double> values) {
  return toMatrix(std::vector<float>(values.begin(), values.end()), 1);
}

/// A data set as tensors.
struct ExchangeTensors {
  torch::Tensor device, exchange, closedForm, wait, times;

  explicit ExchangeTensors(const ExchangeData &data)
      : device(toMatrix(data.device, data.deviceFeatures)),
        exchange(toMatrix(data.exchange, data.exchangeFeatures)),
        closedForm(column(data.closedFormMs)), wait(column(data.waitMs)),
        times(column(data.timesMs)) {}
};

/// Selected exchanges of a data set as tensors, their structure as indices.
struct Inputs {
  torch::Tensor rows, exchangeOf, groupOf, members;
  torch::Tensor device, exchange;
  /// Others of the exchange and of the group, at least 1.
  torch::Tensor others, groupOthers;
  int64_t exchanges, groups, mostDevices;

  Inputs(const ExchangeTensors &data, const Selection &selection,
         std::span<const int64_t> indices)
      : rows(toIndex(selection.rows)), exchangeOf(toIndex(selection.exchange)),
        groupOf(toIndex(selection.group)), members(toIndex(selection.members)),
        device(data.device.index_select(0, rows)),
        exchange(data.exchange.index_select(0, toIndex(indices))
                     .index_select(0, exchangeOf)),
        exchanges(selection.exchanges), groups(selection.groups),
        mostDevices(selection.mostDevices) {
    others = countOthers(exchangeOf, exchanges);
    groupOthers = countOthers(groupOf, groups);
  }

private:
  static torch::Tensor countOthers(const torch::Tensor &owner, int64_t owners) {
    torch::Tensor ones = torch::ones({owner.size(0), 1});
    torch::Tensor counts = torch::zeros({owners, 1}).index_add(0, owner, ones);
    return counts.index_select(0, owner).sub(1).clamp_min(1);
  }
};

struct Parameters {
  std::vector<torch::Tensor> all;
  size_t phiCount;

  explicit Parameters(const CommunicationNetwork &network)
      : all(toTensors(network.phi)), phiCount(all.size()) {
    for (torch::Tensor &tensor : toTensors(network.head))
      all.push_back(tensor);
  }
  std::span<const torch::Tensor> phi() const {
    return std::span(all).first(phiCount);
  }
  std::span<const torch::Tensor> head() const {
    return std::span(all).subspan(phiCount);
  }
};

/// Mean over the others with the same owner.
torch::Tensor meanOfOthers(const torch::Tensor &phi, const torch::Tensor &owner,
                           int64_t owners, const torch::Tensor &others) {
  torch::Tensor sums = torch::zeros({owners, phi.size(1)}, phi.options())
                           .index_add(0, owner, phi);
  return (sums.index_select(0, owner) - phi) / others.to(phi.dtype());
}

/// phi is never negative, so that rows of zeros may stand for missing devices.
torch::Tensor maximumOfOthers(const torch::Tensor &phi, const Inputs &inputs) {
  torch::Tensor filled =
      torch::cat({phi, torch::zeros({1, phi.size(1)}, phi.options())});
  torch::Tensor two =
      std::get<0>(filled.index_select(0, inputs.members)
                      .view({inputs.exchanges, inputs.mostDevices, phi.size(1)})
                      .topk(2, 1));
  torch::Tensor largest = two.select(1, 0).index_select(0, inputs.exchangeOf);
  torch::Tensor second = two.select(1, 1).index_select(0, inputs.exchangeOf);
  return torch::where(phi == largest, second, largest);
}

/// r of each row; in double with rounded phi where `exact`, as the inference.
torch::Tensor corrections(const Parameters &parameters, const Inputs &inputs,
                          bool exact) {
  torch::Tensor phi = torch::relu(applyLayers(parameters.phi(), inputs.device));
  if (exact)
    phi = torch::round(phi.to(torch::kFloat64) / kPhiUnit) * kPhiUnit;
  torch::Tensor seen = torch::cat(
      {phi,
       meanOfOthers(phi, inputs.exchangeOf, inputs.exchanges, inputs.others),
       maximumOfOthers(phi, inputs),
       meanOfOthers(phi, inputs.groupOf, inputs.groups, inputs.groupOthers)},
      1);
  torch::Tensor context =
      torch::cat({seen.to(torch::kFloat32), inputs.exchange}, 1);
  return applyLayers(parameters.head(), context)
      .clamp(-kMostCorrection, kMostCorrection);
}

torch::Tensor loss(const Parameters &parameters, const ExchangeTensors &data,
                   const Inputs &inputs) {
  auto ofRows = [&](const torch::Tensor &values) {
    return values.index_select(0, inputs.rows);
  };
  torch::Tensor times = ofRows(data.wait) +
                        ofRows(data.closedForm) *
                            torch::exp(corrections(parameters, inputs, false));
  return logarithmicLoss(torch::log(times + kLeastMs),
                         torch::log(ofRows(data.times) + kLeastMs));
}

} // namespace

double neuroshard::fitCommunicationNetwork(CommunicationNetwork &network,
                                           const ExchangeData &training,
                                           const ExchangeData &validation,
                                           const FitOptions &options) {
  at::set_num_threads(1);
  Parameters parameters(network);
  ExchangeTensors train(training), held(validation);
  std::vector<int64_t> heldIndices = allOf(validation);
  Inputs heldInputs(held, Selection(validation, heldIndices), heldIndices);
  double best = optimise(
      parameters.all, training.size(), options,
      [&](std::span<const int64_t> indices) {
        return loss(parameters, train,
                    Inputs(train, Selection(training, indices), indices));
      },
      [&] { return loss(parameters, held, heldInputs).item<double>(); });
  network.phi = toDense(parameters.phi());
  network.head = toDense(parameters.head());
  return best;
}

std::vector<double>
neuroshard::predictCorrections(const CommunicationNetwork &network,
                               const ExchangeData &data) {
  torch::NoGradGuard noGradients;
  at::set_num_threads(1);
  std::vector<int64_t> indices = allOf(data);
  Inputs inputs(ExchangeTensors(data), Selection(data, indices), indices);
  torch::Tensor result =
      corrections(Parameters(network), inputs, true).contiguous();
  const float *values = result.const_data_ptr<float>();
  return {values, values + result.numel()};
}
