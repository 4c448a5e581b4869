//===- RelayDuties.cpp - Order of second stages at relays -----------------===//

#include "RelayDuties.h"

#include "HierarchicalAllToAll.h"
#include "HierarchicalIds.h"

#include <algorithm>
#include <exception>
#include <vector>

namespace neuroshard::runtime {

void relayIds(Device &device, const Routed *last) {
  if (last &&
      std::ranges::find(device.idsToRelay, last) == device.idsToRelay.end())
    return;
  PhaseTimer timer(device.figures, Phase::IdsExchange);
  while (!device.idsToRelay.empty()) {
    Routed *routed = device.idsToRelay.front();
    startSecondStageOfIds(device, *routed);
    device.idsToRelay.erase(device.idsToRelay.begin());
    if (routed == last)
      return;
  }
}

void relayResults(Device &device, const Partials *last) {
  auto isLast = [&](const auto &due) { return due.second == last; };
  if (last && std::ranges::none_of(device.resultsToRelay, isLast))
    return;
  PhaseTimer timer(device.figures, Phase::ResultsExchange);
  while (!device.resultsToRelay.empty()) {
    auto [routed, partials] = device.resultsToRelay.front();
    startSecondStageOfResults(device, *routed, *partials);
    device.resultsToRelay.erase(device.resultsToRelay.begin());
    if (partials == last)
      return;
  }
}

void relayAll(Device &device) {
  relayResults(device);
  relayIds(device);
}

void relayBeforeRelease(Device &device, const Routed *routed,
                        const Partials *partials) noexcept {
  try {
    if (routed)
      relayIds(device, routed);
    for (const auto &due : std::vector(device.resultsToRelay))
      if (due.first == routed || due.second == partials)
        relayResults(device, due.second);
  } catch (const CommunicatorError &) {
    // Whoever waits for these messages has it from the communicator too.
  } catch (const std::exception &error) {
    device.communicator->abort(error.what());
  }
}

} // namespace neuroshard::runtime
