//===- CostNetworks.h - Costs learnt from measured plans --------*- C++ -*-===//
//
// The cost network of DreamShard (Zha et al., NeurIPS 2022, section 3.3): per
// device a sum of table embeddings and a head for its times, and the times of
// its exchanges. Free of LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_PLACEMENT_COSTNETWORKS_H
#define NEUROSHARD_LIB_TRAINING_PLACEMENT_COSTNETWORKS_H

#include "Compute/ComputeNetwork.h"
#include "ExchangeNetwork.h"

#include "neuroshard/CostModel/FeatureScale.h"
#include "neuroshard/Training/PlacementTasks.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace neuroshard {

/// Times of a plan, of every device and every exchange.
struct PlanTimes {
  /// What measured it: cost model and device class.
  std::string hardware;
  std::string deviceClass;
  /// Features are not standardised. Exchanges are those without a device that
  /// starts late.
  SetData sets;
  ExchangeRows exchanges;
  /// Over the devices of exchanges in which some start late: sums of the wait
  /// for the last starter x how much longer the exchange takes, and of the
  /// squares of the wait.
  double waited = 0, waits = 0;
  double costMs = 0;
};

std::string hardwareOf(const PlacementExample &example);

/// Measures a placement by the example's cost model. `devices`: of each piece,
/// -1 for those without a choice.
PlanTimes measurePlan(const PlacementExample &example,
                      std::span<const int> devices);

struct CostNetworkFit {
  /// Steps of Adam on batches of devices, and as many on batches of exchanges.
  int steps = 300;
  double learningRate = 1e-3;
  /// Does not change the result.
  int threads = 1;
};

/// A cost network for each hardware, which starts with its first plan.
class CostNetworks {
public:
  /// `tables`: scale of the features of tables.
  CostNetworks(FeatureScale tables, uint64_t seed);
  ~CostNetworks();

  /// Adds a plan to the training data; each eighth of a hardware's plans is
  /// only for choosing among the weights of a fit.
  void add(const PlanTimes &plan);
  /// Trains the networks further, on all plans so far.
  void fit(const CostNetworkFit &options);
  /// The networks as a cost model; the roofline for hardware without a plan.
  std::unique_ptr<CostModel> modelFor(const std::string &hardware) const;

private:
  struct Hardware;
  Hardware &hardwareOf(const PlanTimes &plan);
  void fitCompute(Hardware &hardware, const CostNetworkFit &options) const;
  void fitExchange(Hardware &hardware, const CostNetworkFit &options) const;

  const FeatureScale tables;
  const uint64_t seed;
  std::map<std::string, Hardware> known;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_PLACEMENT_COSTNETWORKS_H
