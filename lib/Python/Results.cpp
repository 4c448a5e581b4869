//===- Results.cpp - A search's answer as Python dictionaries -------------===//

#include "Results.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace neuroshard;

static nb::dict toPython(const DeviceCost &device) {
  nb::dict result;
  result["forward_ms"] = device.compute.forwardMs;
  result["backward_ms"] = device.compute.backwardMs;
  result["input_ms"] = device.inputMs;
  result["forward_communication_ms"] = device.forwardCommunicationMs;
  result["backward_communication_ms"] = device.backwardCommunicationMs;
  result["forward_bytes"] = device.forwardBytes;
  result["backward_bytes"] = device.backwardBytes;
  return result;
}

static nb::dict toPython(const MemoryTerms &terms) {
  nb::dict result;
  result["weights_bytes"] = terms.weightsBytes;
  result["optimizer_state_bytes"] = terms.optimizerStateBytes;
  result["ids_bytes"] = terms.idsBytes;
  result["forward_bytes"] = terms.forwardBytes;
  result["backward_bytes"] = terms.backwardBytes;
  result["communicator_bytes"] = terms.communicatorBytes;
  result["dense_reserve_bytes"] = terms.denseReserveBytes;
  result["fragmentation_reserve_bytes"] = terms.fragmentationReserveBytes;
  result["peak_bytes"] = terms.peakBytes();
  return result;
}

nb::dict python::toPython(const CostBreakdown &breakdown) {
  nb::dict result;
  result["cost_ms"] = breakdown.costMs;
  result["worst_ms"] = breakdown.worstMs();
  result["input_ms"] = breakdown.inputMs;
  result["max_forward_ms"] = breakdown.maxForwardMs;
  result["exposed_forward_communication_ms"] =
      breakdown.exposedForwardCommunicationMs;
  result["dense_ms"] = breakdown.denseMs;
  result["backward_communication_ms"] = breakdown.backwardCommunicationMs;
  result["max_backward_ms"] = breakdown.maxBackwardMs;
  nb::list devices, snapshots;
  for (const DeviceCost &device : breakdown.devices)
    devices.append(::toPython(device));
  for (const SnapshotCost &snapshot : breakdown.snapshots) {
    nb::dict entry;
    entry["name"] = snapshot.name;
    entry["share"] = snapshot.share;
    entry["cost_ms"] = snapshot.costMs;
    snapshots.append(entry);
  }
  result["devices"] = devices;
  result["snapshots"] = snapshots;
  return result;
}

nb::dict python::toPython(const MemoryReport &memory) {
  nb::list devices;
  for (const MemoryTerms &terms : memory.devices)
    devices.append(::toPython(terms));
  nb::dict result;
  result["devices"] = devices;
  result["host_bytes"] = nb::cast(memory.hostBytes);
  return result;
}

nb::dict python::toPython(const Migration &migration) {
  nb::list moves;
  for (const TableMove &move : migration.moves) {
    nb::dict entry;
    entry["table"] = move.table;
    entry["bytes"] = move.bytes;
    entry["what"] = move.what;
    moves.append(entry);
  }
  nb::dict result;
  result["previous_cost_ms"] = nb::cast(migration.previousCostMs);
  result["why_not_previous"] = migration.whyNotPrevious;
  result["bytes"] = migration.bytes;
  result["move_ms"] = migration.moveMs;
  result["moves"] = moves;
  return result;
}
