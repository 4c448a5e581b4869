//===- BindTraffic.cpp - Python binding of a step's bytes -----------------===//

#include "Bindings.h"
#include "Requests.h"

#include "neuroshard/Planner/Traffic.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <string>

namespace nb = nanobind;
using namespace neuroshard;

namespace {

/// Numbers by exchange, device and bucket.
using Counts = std::vector<std::vector<std::vector<int64_t>>>;

std::map<std::string, PairBytes> byKind(const StepTraffic &traffic) {
  std::map<std::string, PairBytes> kinds = {{"norms", traffic.norms}};
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
  Counts ids;
  std::vector<std::vector<int64_t>> rows;
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
  load.distinctRows = [&step](int32_t table, const Range &range) {
    const std::vector<int64_t> &all = step.rows.at(static_cast<size_t>(table));
    return static_cast<int64_t>(
        std::count_if(all.begin(), all.end(), [&](int64_t row) {
          return row >= range.begin && row < range.end;
        }));
  };
  return load;
}

std::map<std::string, PairBytes>
runTraffic(const ShardingProblem &problem, const ShardingPlan &plan,
           const std::vector<std::vector<int64_t>> &batches, const Counts &ids,
           const std::vector<std::vector<int64_t>> &rows) {
  python::requireValid(problem, plan);
  GivenStep step{batches, ids, rows};
  return byKind(planTraffic(problem, plan.shards, loadOf(step)));
}

std::vector<std::map<std::string, int64_t>>
runBuffers(const ShardingProblem &problem, const ShardingPlan &plan,
           const std::vector<std::vector<int64_t>> &batches, const Counts &ids,
           const std::vector<std::vector<int64_t>> &rows) {
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
             "by exchange, device and bucket. rows: the distinct rows of each "
             "table that are updated.");
  module.def("plan_buffers", &runBuffers, nb::arg("problem"), nb::arg("plan"),
             nb::arg("batches"), nb::arg("ids"), nb::arg("rows"),
             "Bytes that each device takes for such a step beside its tables, "
             "by kind.");
}
