//===- SearchResultJson.cpp - Results of a search as JSON -----------------===//

#include "PlanJson.h"
#include "neuroshard/Artifact/BufferBytes.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Serialization/SearchJson.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace neuroshard;

using Json = nlohmann::ordered_json;

/// Paths of files in messages need not be UTF-8.
static std::string printAnswer(const Json &json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

static Json toJson(const DeviceCost &device) {
  return {{"forward_ms", device.compute.forwardMs},
          {"backward_ms", device.compute.backwardMs},
          {"input_ms", device.inputMs},
          {"forward_communication_ms", device.forwardCommunicationMs},
          {"backward_communication_ms", device.backwardCommunicationMs},
          {"fetch_ms", device.fetchMs},
          {"forward_bytes", device.forwardBytes},
          {"backward_bytes", device.backwardBytes}};
}

/// Null if it is not known.
static Json toJson(const PredictionInterval &interval) {
  if (!interval.isKnown())
    return nullptr;
  return {{"low", interval.low}, {"high", interval.high}};
}

static Json toJson(const CostBreakdown &breakdown) {
  Json devices = Json::array(), snapshots = Json::array();
  for (const DeviceCost &device : breakdown.devices)
    devices.push_back(toJson(device));
  for (const SnapshotCost &snapshot : breakdown.snapshots)
    snapshots.push_back({{"name", snapshot.name},
                         {"share", snapshot.share},
                         {"cost_ms", snapshot.costMs}});
  Json caches = Json::array();
  for (const CacheCost &cache : breakdown.caches)
    caches.push_back(
        {{"shard", cache.shard}, {"rows", cache.rows}, {"hits", cache.hits}});
  return {{"cost_ms", breakdown.costMs},
          {"worst_ms", breakdown.worstMs()},
          {"input_ms", breakdown.inputMs},
          {"fetch_ms", breakdown.fetchMs},
          {"max_forward_ms", breakdown.maxForwardMs},
          {"exposed_forward_communication_ms",
           breakdown.exposedForwardCommunicationMs},
          {"dense_ms", breakdown.denseMs},
          {"backward_communication_ms", breakdown.backwardCommunicationMs},
          {"max_backward_ms", breakdown.maxBackwardMs},
          {"fixed_ms", breakdown.fixedMs},
          {"low_ms", breakdown.lowMs},
          {"high_ms", breakdown.highMs},
          {"compute_interval", toJson(breakdown.computeInterval)},
          {"communication_interval", toJson(breakdown.communicationInterval)},
          {"devices", std::move(devices)},
          {"caches", std::move(caches)},
          {"snapshots", std::move(snapshots)}};
}

static Json toJson(const MemoryTerms &terms) {
  return {{"weights_bytes", terms.weightsBytes},
          {"optimizer_state_bytes", terms.optimizerStateBytes},
          {"ids_bytes", terms.idsBytes},
          {"forward_bytes", terms.forwardBytes},
          {"backward_bytes", terms.backwardBytes},
          {"communicator_bytes", terms.communicatorBytes},
          {"dense_reserve_bytes", terms.denseReserveBytes},
          {"fragmentation_reserve_bytes", terms.fragmentationReserveBytes},
          {"peak_bytes", terms.peakBytes()}};
}

static Json toJson(const MemoryReport &memory) {
  Json devices = Json::array();
  for (const MemoryTerms &terms : memory.devices)
    devices.push_back(toJson(terms));
  return {{"devices", std::move(devices)},
          {"host_bytes", memory.hostBytes},
          {"disk_bytes", memory.diskBytes}};
}

/// By kind, one number for each device.
static Json toJson(const std::vector<BufferBytes> &devices) {
  Json kinds = Json::object();
  for (size_t i = 0; i < kNumBufferKinds && !devices.empty(); ++i) {
    auto kind = static_cast<BufferKind>(i);
    Json &bytes = kinds[bufferName(kind)] = Json::array();
    for (const BufferBytes &device : devices)
      bytes.push_back(device[kind]);
  }
  return kinds;
}

static Json toJson(const Migration &migration) {
  Json moves = Json::array();
  for (const TableMove &move : migration.moves)
    moves.push_back(
        {{"table", move.table}, {"bytes", move.bytes}, {"what", move.what}});
  Json previous;
  if (migration.previousCostMs)
    previous = *migration.previousCostMs;
  return {{"previous_cost_ms", previous},
          {"why_not_previous", migration.whyNotPrevious},
          {"bytes", migration.bytes},
          {"move_ms", migration.moveMs},
          {"moves", std::move(moves)}};
}

static int64_t peakBytes(const MemoryReport &memory) {
  int64_t peak = 0;
  for (const MemoryTerms &terms : memory.devices)
    peak = std::max(peak, terms.peakBytes());
  return peak;
}

std::string
neuroshard::writeSearchResult(const SearchResult &result,
                              const std::vector<std::string> &remarks,
                              const std::vector<Assumption> &assumptions) {
  Json json = {{"cost_ms", result.breakdown.costMs}};
  // Zero is what is known when nothing is.
  json["lower_bound_ms"] =
      result.lowerBoundMs != 0 ? Json(result.lowerBoundMs) : Json();
  json["peak_bytes"] = peakBytes(result.memory);
  json["shards"] = result.plan.shards.size();
  json["devices"] = result.plan.deviceCount;
  json["seconds"] = result.seconds;
  json["breakdown"] = toJson(result.breakdown);
  json["memory"] = toJson(result.memory);
  json["buffers"] = toJson(result.buffers);
  json["explanation"] = result.explanation;
  json["tried"] = result.tried;
  json["remarks"] = remarks;
  json["assumptions"] = Json::array();
  for (const Assumption &one : assumptions)
    json["assumptions"].push_back({{"about", one.about}, {"text", one.text}});
  json["stop_reason"] = result.stopReason;
  json["evaluations"] = result.evaluations;
  json["migration"] = result.migration ? toJson(*result.migration) : Json();
  json["plan"] = json::toJson(result.plan);
  return printAnswer(json);
}

std::string neuroshard::writeBreakdown(const CostBreakdown &breakdown) {
  return printAnswer(toJson(breakdown));
}

std::string neuroshard::writePlanningError(const PlanningError &error) {
  return printAnswer({{"limit", toString(error.limit)},
                      {"message", error.message},
                      {"details", error.details},
                      {"advice", error.advice}});
}
