//===- IdMapSpans.h - Trace spans of the maps of dynamic ids ----*- C++ -*-===//
//
// Ids of tables with dynamic ids become rows before a step. The planner prices
// that as a term of its own, of two parts; a running step has a span for each.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_IDMAPSPANS_H
#define NEUROSHARD_ARTIFACT_IDMAPSPANS_H

#include <string>

namespace neuroshard {

inline constexpr const char *kIdMapsTerm = "id_maps";

/// Ids to the owners of their part of the map, and rows back.
inline constexpr const char *kIdMapsExchange = "exchange";
/// Distinct ids found, and looked up by their owners.
inline constexpr const char *kIdMapsLookUp = "look_up";

/// The span of a part in traces, as those of the phases of StepPhases.h.
inline std::string idMapsSpan(const char *part) {
  return std::string("neuroshard::").append(kIdMapsTerm) + "::" + part;
}

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_IDMAPSPANS_H
