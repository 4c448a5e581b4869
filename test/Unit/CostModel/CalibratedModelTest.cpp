//===- CalibratedModelTest.cpp - Predictions as a machine corrects them ---===//

#include "Support.h"
#include "TemporaryFolder.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Serialization/Json.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

constexpr const char *kMachine = R"({
 "schema": "neuroshard.machine.v1", "cost_model": "roofline",
 "device_class": "CPU", "devices": 2, "groups": 1,
 "terms": {"input": {"scale": 2, "fixed_ms": 0.5},
           "forward": {"scale": 3, "fixed_ms": 0.25},
           "forward_communication": {"scale": 4, "fixed_ms": 0},
           "backward_communication": {"scale": 5, "fixed_ms": 1},
           "backward": {"scale": 6, "fixed_ms": 0}},
 "step_fixed_ms": 7, "step_interval": {"low": 0.75, "high": 1.5},
 "measured": {"date": "today"}})";

ShardingProblem tablesOn(const char *topology) {
  ShardingProblem problem;
  problem.batch.globalSize = 4096;
  problem.topology = *parseTopology(topology);
  addTable(problem, makeTable("a", 100000, 64), 20);
  addTable(problem, makeTable("b", 100000, 64), 10);
  return problem;
}

class CalibratedModelTest : public testing::Test {
protected:
  std::string write(const std::string &text) {
    spill(folder.file("machine.json"), text);
    return folder.file("machine.json");
  }

  std::string errorOf(const std::string &text) {
    auto model = makeCostModel(write(text), *parseTopology("2xCPU"));
    return model ? "" : toString(model.error());
  }

  TemporaryFolder folder;
};

TEST_F(CalibratedModelTest, EveryTermIsCorrected) {
  ShardingProblem problem = tablesOn("2xCPU");
  auto plain = makeRooflineModel();
  auto machine = *makeCostModel(write(kMachine), problem.topology);
  EXPECT_EQ(machine->name(), "machine:roofline");
  SearchResult found = *search(problem, *plain, {});
  ObjectiveOptions step;
  CostBreakdown before = evaluate(problem, found.plan, *plain, step);
  CostBreakdown after = evaluate(problem, found.plan, *machine, step);
  for (size_t d = 0; d < 2; ++d) {
    const DeviceCost &one = before.devices[d], &other = after.devices[d];
    EXPECT_DOUBLE_EQ(other.inputMs, 2 * one.inputMs + 0.5);
    EXPECT_DOUBLE_EQ(other.compute.forwardMs, 3 * one.compute.forwardMs + 0.25);
    EXPECT_DOUBLE_EQ(other.forwardCommunicationMs,
                     4 * one.forwardCommunicationMs);
    EXPECT_DOUBLE_EQ(other.backwardCommunicationMs,
                     5 * one.backwardCommunicationMs + 1);
    EXPECT_DOUBLE_EQ(other.compute.backwardMs, 6 * one.compute.backwardMs);
  }
  EXPECT_EQ(before.fixedMs, 0);
  EXPECT_EQ(after.fixedMs, 7);
  EXPECT_EQ(before.highMs, 0);
  EXPECT_DOUBLE_EQ(after.lowMs, 0.75 * after.costMs);
  EXPECT_DOUBLE_EQ(after.highMs, 1.5 * after.costMs);
  EXPECT_DOUBLE_EQ(after.costMs,
                   after.inputMs + after.maxForwardMs +
                       after.exposedForwardCommunicationMs + after.denseMs +
                       after.backwardCommunicationMs + after.maxBackwardMs + 7);
}

/// The search prices plans piece by piece; the plan's price from scratch has
/// the same bits, and no plan is below the bound.
TEST_F(CalibratedModelTest, TheSearchUsesIt) {
  ShardingProblem problem = tablesOn("2xCPU");
  auto machine = *makeCostModel(write(kMachine), problem.topology);
  SearchResult found = *search(problem, *machine, {});
  EXPECT_EQ(found.breakdown.costMs,
            evaluate(problem, found.plan, *machine, {}).costMs);
  EXPECT_LE(found.lowerBoundMs, found.breakdown.costMs);
  EXPECT_GE(found.lowerBoundMs, 7);
}

/// Waiting for a device that starts late is not part of the exchange.
TEST_F(CalibratedModelTest, SkewsAreNotScaled) {
  ShardingProblem problem = tablesOn("2xCPU");
  auto plain = makeRooflineModel();
  auto machine = *makeCostModel(write(kMachine), problem.topology);
  std::vector<DeviceLoad> loads(2);
  for (DeviceLoad &load : loads)
    load.forwardBytes = 1e7;
  Traffic traffic = trafficOf(problem.topology, loads, Direction::Forward);
  std::vector<double> skews = {0, 10};
  auto exchange = plain->communicationMs(traffic, {}, Direction::Forward);
  auto waited = plain->communicationMs(traffic, skews, Direction::Forward);
  auto found = machine->communicationMs(traffic, skews, Direction::Forward);
  ASSERT_GT(waited[0], exchange[0] + 9);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(found[i], waited[i] + 3 * exchange[i], 1e-9);
}

/// A device without shards has nothing to do, which takes no fixed part.
TEST_F(CalibratedModelTest, NothingStaysNothing) {
  auto machine = *makeCostModel(write(kMachine), *parseTopology("2xCPU"));
  ShardSet empty{findDeviceClass("CPU"), {}};
  ComputeMs time;
  machine->computeMs({&empty, 1}, {&time, 1});
  EXPECT_EQ(time.total(), 0);
}

TEST_F(CalibratedModelTest, ItSaysWhereItWasMeasured) {
  std::string path = write(kMachine);
  for (const char *topology : {"2xCPU", "4xCPU", "2x1xCPU@1gbit"}) {
    ShardingProblem problem = tablesOn(topology);
    auto machine = *makeCostModel(path, problem.topology);
    ShardingPlan plan = search(problem, *machine, {})->plan;
    std::vector<std::string> remarks = remarksOnPlan(problem, plan, *machine);
    EXPECT_EQ(std::count_if(remarks.begin(), remarks.end(),
                            [](const std::string &text) {
                              return text.find("was measured on 2 CPU;") !=
                                     std::string::npos;
                            }),
              std::string_view(topology) == "2xCPU" ? 0 : 1)
        << topology;
  }
}

TEST_F(CalibratedModelTest, ItSaysWhatRanItsSteps) {
  std::string ofTorchRec = kMachine;
  std::string_view before = "\"device_class\"";
  ofTorchRec.insert(ofTorchRec.find(before), "\"target\": \"torchrec-1.9\", ");
  for (const std::string &text : {std::string(kMachine), ofTorchRec})
    for (Target target : {Target::Native, Target::TorchRec19}) {
      ShardingProblem problem = tablesOn("2xCPU");
      problem.target = target;
      auto machine = *makeCostModel(write(text), problem.topology);
      ShardingPlan plan = search(problem, *machine, {})->plan;
      std::vector<std::string> remarks = remarksOnPlan(problem, plan, *machine);
      bool isOther = (text == ofTorchRec) != (target == Target::TorchRec19);
      EXPECT_EQ(std::count_if(remarks.begin(), remarks.end(),
                              [](const std::string &remark) {
                                return remark.find("calibrate with its "
                                                   "--engine") !=
                                       std::string::npos;
                              }),
                isOther ? 1 : 0);
    }
}

TEST_F(CalibratedModelTest, WrongFilesAreRefused) {
  auto with = [](std::string_view from, std::string_view to) {
    std::string text = kMachine;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_EQ(errorOf(kMachine), "");
  EXPECT_THAT(errorOf("{"), HasSubstr("machine.json"));
  EXPECT_THAT(errorOf(with("\"scale\": 3", "\"scale\": 0")),
              HasSubstr("terms.forward.scale: expected a number from 1e-6 to "
                        "1e6, got: 0"));
  EXPECT_THAT(errorOf(with("\"step_fixed_ms\": 7", "\"step_fixed_ms\": -1")),
              HasSubstr("step_fixed_ms: expected milliseconds from 0"));
  EXPECT_THAT(errorOf(with("\"low\": 0.75", "\"low\": 2")),
              HasSubstr("step_interval.low: expected a number from 0 to 1"));
  EXPECT_THAT(errorOf(with("\"high\": 1.5", "\"high\": 0.5")),
              HasSubstr("step_interval.high: expected a number from 1"));
  // Files from before have none.
  EXPECT_EQ(
      errorOf(with("\"step_interval\": {\"low\": 0.75, \"high\": 1.5},", "")),
      "");
  EXPECT_THAT(errorOf(with("\"devices\": 2", "\"devices\": 0")),
              HasSubstr("devices: expected at least 1, got: 0"));
  EXPECT_THAT(errorOf(with("\"CPU\"", "\"toaster\"")),
              HasSubstr("device_class: unknown device class 'toaster'; known: "
                        "H200, "));
  EXPECT_THAT(errorOf(with("{\"date\": \"today\"}", "3")),
              HasSubstr("measured: expected an object"));
  EXPECT_THAT(errorOf(with("machine.v1", "machine.v9")), HasSubstr("schema"));
  auto withReserve = [&](const std::string &bytes) {
    return with("\"groups\": 1",
                R"("groups": 1, "topology": {"levels": [{"name": "node",
      "groups": [1], "bandwidth_gb_per_s": 8, "latency_us": 20}],
      "hosts": [{"memory_bytes": 9}], "devices": [{"class": "CPU",
      "memory_bytes": 9, "host": 0, "reserves": {"communicator_bytes": )" +
                    bytes + "}}]}");
  };
  EXPECT_EQ(errorOf(withReserve("5")), "");
  EXPECT_THAT(errorOf(withReserve("-5")),
              HasSubstr("topology.devices[0].reserves.communicator_bytes: "
                        "expected a whole number in [0, 1125899906842624], "
                        "got: -5"));
  EXPECT_THAT(errorOf(withReserve("\"5\"")),
              HasSubstr("topology.devices[0].reserves.communicator_bytes"));
  EXPECT_THAT(errorOf(with("\"groups\": 1", "\"group\": 1")),
              HasSubstr("group"));
  EXPECT_THAT(errorOf(with("\"roofline\"", "\"other.json\"")),
              HasSubstr("not another machine file"));
  auto missing = makeCostModel("none/machine.json", *parseTopology("2xCPU"));
  EXPECT_THAT(toString(missing.error()), HasSubstr("none/machine.json"));
}

} // namespace
