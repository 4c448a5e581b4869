//===- RelayPieces.h - Pieces of what goes by relay -------------*- C++ -*-===//
//
// Relayed results and gradients travel in pieces: the first so many samples of
// every rank, then the next. The second stage of one piece goes beside the
// first stage of the next: one inside groups, the other between them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_RELAYPIECES_H
#define NEUROSHARD_ARTIFACT_RELAYPIECES_H

#include "neuroshard/Artifact/ExchangePlan.h"

#include <algorithm>
#include <cstdint>

namespace neuroshard {

/// Each piece more hides less and costs a message more.
inline constexpr int64_t kMostRelayPieces = 4;
/// What relays exchange with ranks of samples has so many bytes in a piece, at
/// least: up to 0.1 ms of a fast network card, beside which a message more is
/// little.
inline constexpr double kLeastPieceBytes = 4 << 20;

/// The number of pieces. `relayBytes`: between a relay and all ranks of
/// samples, those of its own group included, in the mean over the relays.
inline int64_t relayPieces(double relayBytes) {
  return std::clamp<int64_t>(
      static_cast<int64_t>(relayBytes / kLeastPieceBytes), 1, kMostRelayPieces);
}

/// The samples of a rank with `batch` of them in one of the pieces.
inline Range samplesOfPiece(int64_t batch, int64_t piece, int64_t pieces) {
  return {batch * piece / pieces, batch * (piece + 1) / pieces};
}

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_RELAYPIECES_H
