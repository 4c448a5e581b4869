//===- ExchangeNetwork.h - Times of exchanges, learnt alone -----*- C++ -*-===//
//
// Free of LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_PLACEMENT_EXCHANGENETWORK_H
#define NEUROSHARD_LIB_TRAINING_PLACEMENT_EXCHANGENETWORK_H

#include "Layers/Dense.h"
#include "Layers/FitOptions.h"

#include "neuroshard/CostModel/CommunicationFeatures.h"

#include <span>
#include <vector>

namespace neuroshard {

/// Those of the exchange models, and three of dims.
inline constexpr int kExchangeRowSize =
    kDeviceFeatureCount + kExchangeFeatureCount + 3;

/// Devices of exchanges in which all start at once.
struct ExchangeRows {
  /// Rows of kExchangeRowSize.
  std::vector<float> features;
  /// Logarithm of the ms of each row.
  std::vector<float> logMs;

  size_t size() const { return logMs.size(); }
};

/// Appends a row for each device.
void featurizeDevices(const Traffic &traffic, Direction direction,
                      std::vector<float> &rows);

DenseStack newExchangeNetwork(uint64_t seed);

/// Trains the network on standardised rows and keeps the weights that did best
/// on `validation`. Runs on the calling thread alone.
void fitExchangeNetwork(DenseStack &network, const ExchangeRows &training,
                        const ExchangeRows &validation,
                        const FitOptions &options);

/// The ms of a standardised row.
double predictExchange(const DenseStack &network, std::span<const float> row);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_PLACEMENT_EXCHANGENETWORK_H
