//===- WireTest.cpp - Results and gradients that travel as f16 or bf16 ----===//
//
// Both as one type, and each as its own. Shows that values that travel are
// rounded exactly once, on every rank alike, that others are not rounded, and
// that half as many bytes are sent.
//
//===----------------------------------------------------------------------===//

#include "Trial.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>

using namespace neuroshard::test;

namespace {

struct WireCase {
  PlanKind plan;
  int devices;
  WireElements wire;
};

/// Types of results and gradients.
const std::vector<WireElements> kWires = {Element::F16,
                                          Element::BF16,
                                          {Element::F32, Element::BF16},
                                          {Element::F16, Element::F32},
                                          {Element::BF16, Element::F16}};

std::string nameOf(Element type) {
  return type == Element::F32 ? "F32" : type == Element::F16 ? "F16" : "BF16";
}

std::vector<WireCase> wireCases() {
  std::vector<WireCase> cases;
  for (WireElements wire : kWires)
    for (int devices : {2, 4, 8})
      for (PlanKind plan : {PlanKind::TableWise, PlanKind::Column})
        cases.push_back({plan, devices, wire});
  return cases;
}

class Wire : public testing::TestWithParam<WireCase> {
protected:
  Trial trial(Optimizer optimizer, unsigned seed) const {
    Model model = makeModel(optimizer);
    model.wire = GetParam().wire;
    return Trial(model, makePlan(model, GetParam().plan, GetParam().devices),
                 GetParam().devices, Data::Reals, seed);
  }
};

INSTANTIATE_TEST_SUITE_P(All, Wire, testing::ValuesIn(wireCases()),
                         [](const auto &info) {
                           return std::string(name(info.param.plan)) + "On" +
                                  std::to_string(info.param.devices) + "As" +
                                  nameOf(info.param.wire.results) + "And" +
                                  nameOf(info.param.wire.gradients);
                         });

// The oracle rounds everything, so own blocks that stayed f32 would differ.
TEST_P(Wire, SumsAreRoundedOnce) {
  Trial both = trial(Optimizer::None, 1);
  for (const auto &sizes :
       std::vector<std::vector<int64_t>>{{29, 17}, {1, 1}, {3, 0}})
    both.expectSameForward(sizes);
}

TEST_P(Wire, GradientsAreRoundedOnce) {
  for (Optimizer optimizer :
       {Optimizer::Sgd, Optimizer::Adagrad, Optimizer::Adam}) {
    Trial both = trial(optimizer, 2);
    for (int step = 1; step <= 2; ++step) {
      both.train({13, 7}, 0.125f, step);
      both.expectSameTables();
      if (GetParam().plan == PlanKind::TableWise) { // columns add otherwise
        EXPECT_EQ(both.result.weightGradients[0],
                  both.expected.weightGradients[0]);
      }
    }
  }
}

/// One table of rows x 1 with the given values, on `devices`.
struct SmallWorld {
  SmallWorld(const std::vector<ShardPlace> &shards,
             const std::vector<float> &values, int devices, WireElements wire)
      : model{{{"t", static_cast<int64_t>(values.size()), 1, Element::F32}},
              {{8, false, 1, {{0, 0}}}},
              Optimizer::Sgd,
              0,
              true,
              wire,
              {}},
        world(model, shards, devices) {
    world.setTable(0, values);
  }

  /// The results of bags of ids.
  std::vector<float> sums(const std::vector<std::vector<int64_t>> &bags) {
    StepResult result;
    EXPECT_TRUE(world.forward(
        {{static_cast<int64_t>(bags.size()), {bags}, {{}}}}, result))
        << world.error();
    return result.results[0][0];
  }

  /// One step of SGD with learning rate 1.
  std::vector<float> train(const std::vector<std::vector<int64_t>> &bags,
                           const std::vector<float> &gradient) {
    StepResult result;
    EXPECT_TRUE(world.train({{static_cast<int64_t>(bags.size()), {bags}, {{}}}},
                            {{gradient}}, 1, 1, result))
        << world.error();
    return world.table(0);
  }

  Model model;
  TestWorld world;
};

TEST(WireRows, PartialSumsAreRoundedAndThenAddedInF32) {
  // Between 2048 and 4096 f16 has even numbers only: 2049 becomes 2048, as
  // a tie, and 2050 + 1 stays 2051 after the partial sums.
  SmallWorld split({{0, 0, 2, 0, 1, {1}}, {0, 2, 4, 0, 1, {0}}},
                   {2049, 2050, 1, 3}, 2, Element::F16);
  EXPECT_EQ(split.sums({{0, 2}, {1, 2}, {1}, {0, 3}}),
            (std::vector<float>{2049, 2051, 2050, 2051}));
}

TEST(WireRows, BeyondF16IsInfinite) {
  std::vector<float> values = {65519, 65520, -70000,
                               std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> sums =
      SmallWorld({{0, 0, 4, 0, 1, {1}}}, values, 2, Element::F16)
          .sums({{0}, {1}, {2}, {3}});
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sums[0], 65504);
  EXPECT_EQ(sums[1], infinity);
  EXPECT_EQ(sums[2], -infinity);
  EXPECT_TRUE(std::isnan(sums[3]));
}

TEST(WireRows, OneDeviceRoundsNothing) {
  SmallWorld alone({{0, 0, 2, 0, 1, {0}}}, {2049, 1e6f}, 1, Element::F16);
  EXPECT_EQ(alone.sums({{0}, {1}}), (std::vector<float>{2049, 1e6f}));
  EXPECT_EQ(alone.train({{0}, {1}}, {4099, 1}),
            (std::vector<float>{2049 - 4099, 1e6f - 1}));
}

TEST(WireRows, OfReplicatedTablesOnlyGradientsTravel) {
  SmallWorld copies({{0, 0, 2, 0, 1, {0, 1}}}, {2049, 1}, 2, Element::F16);
  EXPECT_EQ(copies.sums({{0}, {0, 1}}), (std::vector<float>{2049, 2050}));
  // 4099 becomes 4100 and 4097 becomes 4096 on both ranks.
  EXPECT_EQ(copies.train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4100, 1 - 4096}));
}

TEST(WireRows, ResultsAndGradientsTravelInTypesOfTheirOwn) {
  std::vector<ShardPlace> whole = {{0, 0, 2, 0, 1, {1}}};
  // 2049 becomes 2048 as f16, as results, and 4099 becomes 4100.
  SmallWorld gradients(whole, {2049, 1}, 2, {Element::F32, Element::F16});
  EXPECT_EQ(gradients.sums({{0}, {0, 1}}), (std::vector<float>{2049, 2050}));
  EXPECT_EQ(gradients.train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4100, 1 - 4096}));
  SmallWorld results(whole, {2049, 1}, 2, {Element::F16, Element::F32});
  EXPECT_EQ(results.sums({{0}, {0, 1}}), (std::vector<float>{2048, 2050}));
  EXPECT_EQ(results.train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4099, 1 - 4097}));
}

TEST(WireRows, CopiesExchangeGradientsInTheTypeOfGradients) {
  std::vector<ShardPlace> copies = {{0, 0, 2, 0, 1, {0, 1}}};
  EXPECT_EQ(SmallWorld(copies, {2049, 1}, 2, {Element::F16, Element::F32})
                .train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4099, 1 - 4097}));
  EXPECT_EQ(SmallWorld(copies, {2049, 1}, 2, {Element::F32, Element::F16})
                .train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4100, 1 - 4096}));
}

/// All of its tables have too many rows for sums of rows to travel.
Model gatheringModel() {
  Model model = makeModel(Optimizer::RowwiseAdagrad);
  model.tables[2].rows = 50;
  return model;
}

/// Bytes sent by all devices in each phase of a training step.
std::map<std::string, int64_t> sentBytes(PlanKind kind, WireElements wire) {
  Model model = gatheringModel();
  model.wire = wire;
  Trial both(model, makePlan(model, kind, 4), 4, Data::Integers, 3);
  both.train({13, 7}, 0.125f, 1);
  std::map<std::string, int64_t> bytes;
  for (int32_t rank = 0; rank < 4; ++rank)
    for (int32_t phase = 0; phase < nsrt_num_phases(); ++phase)
      bytes[nsrt_phase_name(phase)] += nsrt_device_phase_bytes(
          nsrt_world_device(both.world.get(), rank), phase);
  return bytes;
}

TEST(WireBytes, AreHalfOfF32) {
  for (PlanKind kind : {PlanKind::TableWise, PlanKind::Column, PlanKind::Row,
                        PlanKind::RowColumn}) {
    auto wide = sentBytes(kind, Element::F32);
    ASSERT_GT(wide["results_exchange"], 0);
    for (WireElements wire : kWires) {
      auto narrow = sentBytes(kind, wire);
      for (auto &[phase, bytes] : wide) {
        bool halved =
            (phase == "results_exchange" && wire.results != Element::F32) ||
            (phase == "gradients_exchange" && wire.gradients != Element::F32);
        EXPECT_EQ(bytes, narrow[phase] * (halved ? 2 : 1)) << phase;
      }
    }
  }
}

TEST(WireRows, SumsOfRowsAreRoundedBeforeEachHop) {
  // Row 0: 2047 + 2 becomes 2048 as f16, and 2048 + 1 becomes 2048.
  SmallWorld copies({{0, 0, 2, 0, 1, {0, 1}}}, {2049, 1}, 2, Element::F16);
  EXPECT_EQ(copies.train({{0}, {0}, {0}, {1}}, {2047, 2, 1, 5}),
            (std::vector<float>{2049 - 2048, 1 - 5}));
  SmallWorld exact({{0, 0, 2, 0, 1, {0, 1}}}, {2049, 1}, 2, Element::F32);
  EXPECT_EQ(exact.train({{0}, {0}, {0}, {1}}, {2047, 2, 1, 5}),
            (std::vector<float>{2049 - 2050, 1 - 5}));
}

TEST(WireBytes, OfGatheredIdsStay) {
  auto wide = sentBytes(PlanKind::Replicated, Element::F32);
  auto narrow = sentBytes(PlanKind::Replicated, Element::F16);
  // Values of 20 bags and of the ids of unpooled lookups go to three others.
  Model model = gatheringModel();
  Trial both(model, makePlan(model, PlanKind::Replicated, 1), 1, Data::Integers,
             3);
  std::vector<Batch> batches = both.maker.batches({13, 7});
  int64_t values = 0;
  for (const Values &list : both.maker.gradients(both.oracle, batches))
    for (const std::vector<float> &gradient : list)
      values += static_cast<int64_t>(gradient.size());
  EXPECT_EQ(wide["gradients_exchange"] - narrow["gradients_exchange"],
            values * 3 * 2);
  EXPECT_EQ(wide["results_exchange"], 0);
  EXPECT_EQ(sentBytes(PlanKind::Replicated, {Element::F16, Element::F32}),
            wide);
  EXPECT_EQ(sentBytes(PlanKind::Replicated, {Element::F32, Element::F16}),
            narrow);
}

} // namespace
