//===- MoveEstimate.cpp - Estimate of the cost after an edit --------------===//

#include "MoveEstimate.h"

#include <algorithm>

using namespace neuroshard;

MoveEstimate::MoveEstimate(const Board &board, int power)
    : shares(board.context().shares) {
  if (shares.empty())
    periods.emplace_back(board, kSummary, power);
  for (size_t p = 0; p < shares.size(); ++p)
    periods.emplace_back(board, static_cast<int>(p), power);
  takeMean();
}

void MoveEstimate::setPower(int power) {
  for (EnergyEstimate &period : periods)
    period.setPower(power);
}

void MoveEstimate::takeMean() {
  if (shares.empty()) {
    exactMs = periods.front().costMs();
    energy = periods.front().energyMs();
    criticalDevices = periods.front().critical();
    return;
  }
  exactMs = energy = 0;
  criticalDevices.clear();
  for (size_t p = 0; p < periods.size(); ++p) {
    exactMs += shares[p] * periods[p].costMs();
    energy += shares[p] * periods[p].energyMs();
    for (int device : periods[p].critical())
      if (std::find(criticalDevices.begin(), criticalDevices.end(), device) ==
          criticalDevices.end())
        criticalDevices.push_back(device);
  }
}

void MoveEstimate::measure(bool probe) {
  for (EnergyEstimate &period : periods)
    period.measure(probe);
  takeMean();
}

double MoveEstimate::energyAfter(const LoadChange &change) const {
  if (shares.empty())
    return periods.front().energyAfter(change);
  double mean = 0;
  for (size_t p = 0; p < periods.size(); ++p)
    mean += shares[p] * periods[p].energyAfter(change.periods[p]);
  return mean;
}

bool MoveEstimate::isMeanBelow(const LoadChange &change, double limitMs) const {
  double low = 0, high = 0;
  for (size_t p = 0; p < periods.size(); ++p) {
    auto [least, most] = periods[p].boundsAfter(change.periods[p]);
    low += shares[p] * least;
    high += shares[p] * most;
  }
  if (low >= limitMs)
    return false;
  return high < limitMs || energyAfter(change) < limitMs;
}

double MoveEstimate::costAfter(const LoadChange &change) {
  if (shares.empty())
    return periods.front().costAfter(change);
  double mean = 0;
  for (size_t p = 0; p < periods.size(); ++p)
    mean += shares[p] * periods[p].costAfter(change.periods[p]);
  return mean;
}

void MoveEstimate::apply(const LoadChange &change) {
  if (shares.empty()) {
    periods.front().apply(change);
    energy = periods.front().energyMs();
    return;
  }
  energy = 0;
  for (size_t p = 0; p < periods.size(); ++p) {
    periods[p].apply(change.periods[p]);
    energy += shares[p] * periods[p].energyMs();
  }
}
