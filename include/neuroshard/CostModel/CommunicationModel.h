//===- CommunicationModel.h - Trained models of exchanges -------*- C++ -*-===//
///
/// \file
/// One model for all numbers of devices and all topologies of a device class.
/// The network, per device d of an exchange:
///
///   x_d   = (clamp(device features) - mean) / std
///   phi_d = ReLU(P1 ReLU(P0 x_d)), rounded to kPhiUnit
///   g     = (clamp(exchange features) - mean) / std
///   c_d   = [phi_d, mean of phi over the other devices, maximum over them,
///            mean over the others of d's innermost group, g]
///   r_d   = H2 ReLU(H1 ReLU(H0 c_d)), kept within +-kMostCorrection
///   time  = wait for the last starter + closed form x exp(r_d), ms
///
/// where clamp keeps each feature in the training range, widened by a margin,
/// and a mean over no device is 0. A model has several such members; its
/// prediction is that of the mean of their r. Sums of the rounded phi are
/// exact in double, so the order of the devices never changes a prediction.
/// docs/communication-model.md has the file format.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_COMMUNICATIONMODEL_H
#define NEUROSHARD_COSTMODEL_COMMUNICATIONMODEL_H

#include "neuroshard/CostModel/CommunicationFeatures.h"
#include "neuroshard/CostModel/CommunicationSamples.h"
#include "neuroshard/CostModel/DenseLayer.h"
#include "neuroshard/CostModel/FeatureScale.h"
#include "neuroshard/CostModel/Safetensors.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neuroshard {

inline constexpr std::string_view kCommunicationModelSchema =
    "neuroshard.communication_model.v1";

/// Default widths of layers; a file may have others, up to kMaxLayerWidth.
inline constexpr int kPhiHidden = 16, kPhiWidth = 8, kContextHidden = 32;
/// Values of phi are rounded to multiples of this, whose sums are exact in
/// double.
inline constexpr double kPhiUnit = 0x1p-24;
/// The closed form is corrected by a factor of at most exp of this.
inline constexpr double kMostCorrection = 6;

struct CommunicationMember {
  /// kDeviceFeatureCount -> hidden -> phi.
  std::array<DenseLayer, 2> phi;
  /// 4 x phi + kExchangeFeatureCount -> hidden -> hidden -> 1.
  std::array<DenseLayer, 3> head;
};

/// All of a communication model; the one owner of the layout of its file.
struct CommunicationParameters {
  FeatureScale device, exchange;
  /// At least one, at most kMaxMembers, all of the same shapes.
  std::vector<CommunicationMember> members;
  /// Name of the DeviceClass, and of torch.distributed's back end.
  std::string deviceClass, backend;
  /// Numbers of levels of the topologies it was trained on, ascending.
  std::vector<int> levelCounts;
  /// Fitted figures of the k-th level, counted from the innermost.
  std::vector<LinkFigures> links;
  /// False: trained on simulated times; never picked by default.
  bool measured = false;
  /// Of the time of a device in an exchange.
  PredictionInterval interval;
  /// A JSON object: machine, data, samples, held-out figures, seed, date.
  std::string card = "{}";
};

/// Everything wrong with the parameters; empty when they are sound: shapes,
/// finite numbers, std > 0, min <= max, the card.
Diagnostics check(const CommunicationParameters &parameters);

/// To and from a model file. Both check; reading also checks schema and
/// feature names.
Expected<TensorFile> toTensorFile(const CommunicationParameters &parameters);
Expected<CommunicationParameters>
toCommunicationParameters(const TensorFile &file);

/// A communication model ready to evaluate. Immutable.
class CommunicationModel {
public:
  /// `parameters` must pass check().
  explicit CommunicationModel(const CommunicationParameters &parameters);
  ~CommunicationModel();

  /// See CostModel::communicationMs.
  std::vector<double> timesMs(const Traffic &traffic,
                              std::span<const double> startSkewsMs,
                              Direction direction) const;

  /// How far the members disagree: the largest standard deviation over the
  /// members of r_d. 0 with one member.
  double uncertainty(const Traffic &traffic,
                     std::span<const double> startSkewsMs,
                     Direction direction) const;

  /// Whether all devices are of the model's class and it was trained on
  /// topologies with as many levels.
  bool covers(const Topology &topology) const;

  /// Remarks on exchanges outside the training data, for a plan whose devices
  /// hold `sets`; see CostModel::remarks.
  std::vector<std::string> remarks(std::span<const ShardSet> sets,
                                   const Topology &topology) const;

  /// The levels with the figures that a prediction uses: a level that states
  /// the defaults of its device class gets the fitted ones, any other keeps its
  /// own.
  std::vector<TopologyLevel> usedLevels(const Topology &topology) const;

  const std::string &deviceClass() const;
  const std::string &backend() const;
  bool measured() const;
  PredictionInterval interval() const;

  /// Limits of the training data: fewest and most devices; most bytes that a
  /// device sent or received; whether a link had about these figures.
  std::pair<int, int> deviceCounts() const;
  double mostDeviceBytes() const;
  bool knowsLink(const TopologyLevel &level) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_COMMUNICATIONMODEL_H
