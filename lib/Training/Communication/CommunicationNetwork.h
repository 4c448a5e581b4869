//===- CommunicationNetwork.h - Exchanges in LibTorch -----------*- C++ -*-===//
//
// The same network as the plain C++ inference of exchanges. Free of LibTorch's
// headers.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_COMMUNICATION_COMMUNICATIONNETWORK_H
#define NEUROSHARD_LIB_TRAINING_COMMUNICATION_COMMUNICATIONNETWORK_H

#include "Layers/Dense.h"
#include "Layers/FitOptions.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neuroshard {

/// Exchanges as matrices: the devices of exchange i are the rows firstDevice[i]
/// to firstDevice[i + 1] of `device`; row i of `exchange` is common to them.
struct ExchangeData {
  int64_t deviceFeatures = 0;
  int64_t exchangeFeatures = 0;
  /// Standardised.
  std::vector<float> device, exchange;
  std::vector<int64_t> firstDevice = {0};
  /// Per device: its innermost group within the exchange; the time of the links
  /// by the closed form; the wait for the last starter; the measured time,
  /// empty where only predictions are wanted.
  std::vector<int64_t> group;
  std::vector<double> closedFormMs, waitMs, timesMs;

  size_t size() const { return firstDevice.size() - 1; }
};

struct CommunicationNetwork {
  DenseStack phi;
  DenseStack head;
};

/// Trains `network` and keeps the weights that did best on `validation`.
/// Returns their loss: a smoothed |log(predicted / measured)| of the devices'
/// times. Runs on the calling thread alone.
double fitCommunicationNetwork(CommunicationNetwork &network,
                               const ExchangeData &training,
                               const ExchangeData &validation,
                               const FitOptions &options);

/// The corrections r of all devices, with the rounding that the plain C++
/// inference does.
std::vector<double> predictCorrections(const CommunicationNetwork &network,
                                       const ExchangeData &data);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_COMMUNICATION_COMMUNICATIONNETWORK_H
