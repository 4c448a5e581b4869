//===- BindTraffic.cpp - Python binding of a step's bytes -----------------===//

#include "Bindings.h"
#include "Requests.h"

#include "neuroshard/Planner/Traffic.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <set>
#include <string>

namespace nb = nanobind;
using namespace neuroshard;

namespace {

/// Numbers by exchange, device and bucket, or by table and device.
using Counts = std::vector<std::vector<std::vector<int64_t>>>;

std::map<std::string, PairBytes> byKind(const StepTraffic &traffic) {
  std::map<std::string, PairBytes> kinds = {{"norms", traffic.norms},
                                            {"copies", traffic.copySums},
                                            {"averages", traffic.averages}};
  auto add = [&](const char *kind, const PairBytes &bytes) {
    PairBytes &sum = kinds[kind];
    sum.resize(bytes.size(), std::vector<int64_t>(bytes.size()));
    for (size_t from = 0; from < bytes.size(); ++from)
      for (size_t to = 0; to < bytes.size(); ++to)
        sum[from][to] += bytes[from][to];
  };
  for (const ExchangeTraffic &one : traffic.exchanges) {
    add("ids", one.ids);
    add("ids", one.relayedIds);
    add("results", one.results);
    add("results", one.relayedResults);
    add("gradients", one.gradients);
    add("gradients", one.relayedGradients);
    add("copies", one.copies);
  }
  return kinds;
}

/// What ranks bring to a step.
struct GivenStep {
  std::vector<std::vector<int64_t>> batches;
  Counts ids, rows;
};

/// The step must outlive its load.
StepLoad loadOf(const GivenStep &step) {
  StepLoad load;
  for (size_t x = 0; x < step.batches.size(); ++x) {
    ExchangeLoad &exchange = load.exchanges.emplace_back();
    exchange.batches = step.batches[x];
    for (const std::vector<int64_t> &ids : step.ids.at(x))
      exchange.idsOfBucket.push_back(
          std::make_shared<const std::vector<int64_t>>(ids));
  }
  load.distinctRows = [&step](int32_t table, const Range &range,
                              const Readers &ranks) {
    const auto &ofRank = step.rows.at(static_cast<size_t>(table));
    std::set<int64_t> distinct;
    for (size_t rank = 0; rank < ofRank.size(); ++rank)
      for (int64_t row : ofRank[rank])
        if (ranks.contains(static_cast<int64_t>(rank)) && row >= range.begin &&
            row < range.end)
          distinct.insert(row);
    return static_cast<int64_t>(distinct.size());
  };
  return load;
}

std::map<std::string, PairBytes>
runTraffic(const ShardingProblem &problem, const ShardingPlan &plan,
           const std::vector<std::vector<int64_t>> &batches, const Counts &ids,
           const Counts &rows) {
  python::requireValid(problem, plan);
  GivenStep step{batches, ids, rows};
  return byKind(planTraffic(problem, plan.shards, loadOf(step)));
}

std::vector<std::map<std::string, int64_t>>
runBuffers(const ShardingProblem &problem, const ShardingPlan &plan,
           const std::vector<std::vector<int64_t>> &batches, const Counts &ids,
           const Counts &rows) {
  python::requireValid(problem, plan);
  GivenStep step{batches, ids, rows};
  std::vector<std::map<std::string, int64_t>> devices;
  for (const BufferBytes &bytes :
       planBuffers(problem, plan.shards, loadOf(step))) {
    std::map<std::string, int64_t> &kinds = devices.emplace_back();
    for (size_t i = 0; i < kNumBufferKinds; ++i) {
      auto kind = static_cast<BufferKind>(i);
      kinds[bufferName(kind)] = bytes[kind];
    }
  }
  return devices;
}

} // namespace

void python::bindTraffic(nb::module_ &module) {
  module.def("plan_traffic", &runTraffic, nb::arg("problem"), nb::arg("plan"),
             nb::arg("batches"), nb::arg("ids"), nb::arg("rows"),
             "Bytes of a training step by kind, sender and receiver, as its "
             "artifact will send them. batches: by exchange and device. ids: "
             "by exchange, device and bucket. rows: by table and device, the "
             "rows that its samples update.");
  module.def("plan_buffers", &runBuffers, nb::arg("problem"), nb::arg("plan"),
             nb::arg("batches"), nb::arg("ids"), nb::arg("rows"),
             "Bytes that each device takes for such a step beside its tables, "
             "by kind.");
}
