//===- WireTest.cpp - Results and gradients that travel in fewer bytes ----===//
//
// Both in one format, and each in its own. Shows that values that travel are
// rounded exactly once, on every rank alike, that others are not rounded, and
// how many bytes are sent.
//
//===----------------------------------------------------------------------===//

#include "Trial.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <utility>

using neuroshard::WireFormat;
using neuroshard::WireType;

namespace neuroshard::test {
namespace {

struct WireCase {
  PlanKind plan;
  int devices;
  WireType wire;
};

/// Formats of results and gradients: without scales, and with.
const std::vector<WireType> kWires = {WireFormat::F16,
                                      WireFormat::BF16,
                                      {WireFormat::F32, WireFormat::BF16},
                                      {WireFormat::F16, WireFormat::F32},
                                      {WireFormat::BF16, WireFormat::F16}};
const std::vector<WireType> kScaledWires = {
    WireFormat::Int8,
    WireFormat::Fp8,
    {WireFormat::F32, WireFormat::Int8},
    {WireFormat::Int8, WireFormat::F32},
    {WireFormat::Fp8, WireFormat::BF16}};

std::string nameOf(WireFormat type) { return std::string(toString(type)); }

std::vector<WireCase> wireCases() {
  std::vector<WireCase> cases;
  for (WireType wire : kWires)
    for (int devices : {2, 4, 8})
      for (PlanKind plan : {PlanKind::TableWise, PlanKind::Column})
        cases.push_back({plan, devices, wire});
  // The oracle has one scale for a whole row.
  for (WireType wire : kScaledWires)
    for (int devices : {2, 4, 8})
      cases.push_back({PlanKind::TableWise, devices, wire});
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
             const std::vector<float> &values, int devices, WireType wire)
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
                   {2049, 2050, 1, 3}, 2, WireFormat::F16);
  EXPECT_EQ(split.sums({{0, 2}, {1, 2}, {1}, {0, 3}}),
            (std::vector<float>{2049, 2051, 2050, 2051}));
}

TEST(WireRows, BeyondF16IsInfinite) {
  std::vector<float> values = {65519, 65520, -70000,
                               std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> sums =
      SmallWorld({{0, 0, 4, 0, 1, {1}}}, values, 2, WireFormat::F16)
          .sums({{0}, {1}, {2}, {3}});
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sums[0], 65504);
  EXPECT_EQ(sums[1], infinity);
  EXPECT_EQ(sums[2], -infinity);
  EXPECT_TRUE(std::isnan(sums[3]));
}

TEST(WireRows, OneDeviceRoundsNothing) {
  SmallWorld alone({{0, 0, 2, 0, 1, {0}}}, {2049, 1e6f}, 1, WireFormat::F16);
  EXPECT_EQ(alone.sums({{0}, {1}}), (std::vector<float>{2049, 1e6f}));
  EXPECT_EQ(alone.train({{0}, {1}}, {4099, 1}),
            (std::vector<float>{2049 - 4099, 1e6f - 1}));
}

TEST(WireRows, OfReplicatedTablesOnlyGradientsTravel) {
  SmallWorld copies({{0, 0, 2, 0, 1, {0, 1}}}, {2049, 1}, 2, WireFormat::F16);
  EXPECT_EQ(copies.sums({{0}, {0, 1}}), (std::vector<float>{2049, 2050}));
  // 4099 becomes 4100 and 4097 becomes 4096 on both ranks.
  EXPECT_EQ(copies.train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4100, 1 - 4096}));
}

TEST(WireRows, ResultsAndGradientsTravelInTypesOfTheirOwn) {
  std::vector<ShardPlace> whole = {{0, 0, 2, 0, 1, {1}}};
  // 2049 becomes 2048 as f16, as results, and 4099 becomes 4100.
  SmallWorld gradients(whole, {2049, 1}, 2, {WireFormat::F32, WireFormat::F16});
  EXPECT_EQ(gradients.sums({{0}, {0, 1}}), (std::vector<float>{2049, 2050}));
  EXPECT_EQ(gradients.train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4100, 1 - 4096}));
  SmallWorld results(whole, {2049, 1}, 2, {WireFormat::F16, WireFormat::F32});
  EXPECT_EQ(results.sums({{0}, {0, 1}}), (std::vector<float>{2048, 2050}));
  EXPECT_EQ(results.train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4099, 1 - 4097}));
}

TEST(WireRows, CopiesExchangeGradientsInTheTypeOfGradients) {
  std::vector<ShardPlace> copies = {{0, 0, 2, 0, 1, {0, 1}}};
  EXPECT_EQ(SmallWorld(copies, {2049, 1}, 2, {WireFormat::F16, WireFormat::F32})
                .train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4099, 1 - 4097}));
  EXPECT_EQ(SmallWorld(copies, {2049, 1}, 2, {WireFormat::F32, WireFormat::F16})
                .train({{0}, {1}}, {4099, 4097}),
            (std::vector<float>{2049 - 4100, 1 - 4096}));
}

/// One table on two devices, with rows of as many columns as it has values for
/// each.
struct WideWorld {
  WideWorld(const std::vector<ShardPlace> &shards,
            const std::vector<std::vector<float>> &rows, int devices,
            WireType wire, std::vector<std::vector<int>> groups = {})
      : model{{{"t", static_cast<int64_t>(rows.size()),
                static_cast<int64_t>(rows[0].size()), Element::F32}},
              {{8, false, 1, {{0, 0}}}},
              Optimizer::Sgd,
              0,
              true,
              wire,
              std::move(groups)},
        world(model, shards, devices) {
    std::vector<float> values;
    for (const std::vector<float> &row : rows)
      values.insert(values.end(), row.begin(), row.end());
    world.setTable(0, values);
  }

  static Batch batchOf(const std::vector<std::vector<int64_t>> &bags) {
    return {static_cast<int64_t>(bags.size()), {bags}, {{}}};
  }

  std::vector<float> sums(const std::vector<std::vector<int64_t>> &bags) {
    StepResult result;
    EXPECT_TRUE(world.forward({batchOf(bags)}, result)) << world.error();
    return result.results[0][0];
  }

  std::vector<float> train(const std::vector<std::vector<int64_t>> &bags,
                           const std::vector<float> &gradient) {
    StepResult result;
    EXPECT_TRUE(world.train({batchOf(bags)}, {{gradient}}, 1, 1, result))
        << world.error();
    return world.table(0);
  }

  Model model;
  TestWorld world;
};

// With a largest value of 127, scales of int8 are 1 and fractions are rounded.
TEST(ScaledWireRows, EachPieceOfColumnsHasItsScale) {
  std::vector<std::vector<float>> rows = {{127, 3.25f, 1, 1, 254, 5, 1, 1}};
  EXPECT_EQ(
      WideWorld({{0, 0, 1, 0, 8, {1}}}, rows, 2, WireFormat::Int8).sums({{0}}),
      (std::vector<float>{128, 4, 0, 0, 254, 4, 0, 0}));
  EXPECT_EQ(WideWorld({{0, 0, 1, 0, 4, {0}}, {0, 0, 1, 4, 8, {1}}}, rows, 2,
                      WireFormat::Int8)
                .sums({{0}}),
            (std::vector<float>{127, 3, 1, 1, 254, 4, 0, 0}));
}

TEST(ScaledWireRows, PartialSumsAreAddedInF32) {
  // 127 and 1.25 become 127 and 1; 254 and 3 become 254 and 4.
  WideWorld split({{0, 0, 1, 0, 2, {0}}, {0, 1, 2, 0, 2, {1}}},
                  {{127, 1.25f}, {254, 3}}, 2, WireFormat::Int8);
  EXPECT_EQ(split.sums({{0, 1}, {0}, {1}, {}}),
            (std::vector<float>{381, 5, 127, 1, 254, 4, 0, 0}));
}

TEST(ScaledWireRows, RelaysRoundSumsOnceMore) {
  // In each group (127, 1.25) + (127, 1.25) is (254, 2), of scale 2; both
  // groups together have (508, 4).
  std::vector<std::vector<float>> rows(4, {127, 1.25f});
  std::vector<ShardPlace> shards;
  for (int d = 0; d < 4; ++d)
    shards.push_back({0, d, d + 1, 0, 2, {d}});
  WideWorld relayed(shards, rows, 4, WireFormat::Int8, {{0, 1}, {2, 3}});
  std::vector<int64_t> all = {0, 1, 2, 3};
  EXPECT_EQ(relayed.sums({all, {0, 1, 2}}),
            (std::vector<float>{508, 4, 381, 3}));
  // Gradients are rounded once: 1.75 becomes 2.
  EXPECT_EQ(relayed.train({all}, {127, 1.75f}),
            (std::vector<float>{0, -0.75f, 0, -0.75f, 0, -0.75f, 0, -0.75f}));
}

TEST(ScaledWireRows, RelaysSendPiecesOfARowWithScalesOfTheirOwn) {
  // The whole row of device 0 meets halves of rows of devices 0 and 1, so that
  // it goes to relays in two pieces: 127 and 4 have scales of their own.
  std::vector<ShardPlace> shards = {{0, 0, 1, 0, 8, {0}},
                                    {0, 1, 2, 0, 4, {0}},
                                    {0, 1, 2, 4, 8, {1}},
                                    {0, 2, 3, 0, 8, {2}}};
  std::vector<float> row = {127, 3, 1, 1, 1.27f, 0.03f, 0.01f, 0.01f};
  WideWorld relayed(shards, {row, std::vector<float>(8), std::vector<float>(8)},
                    4, WireFormat::Int8, {{0, 1}, {2, 3}});
  std::vector<float> sums = relayed.sums({{0}, {0, 1, 2}, {0}, {0}});
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_NEAR(sums[i], row[i % 8], 1e-6f) << i;
  std::vector<float> after = relayed.train({{0}}, row);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(after[i], 0, 1e-6f) << i;
}

TEST(ScaledWireRows, WithANaNOrAnInfinityArriveAsNaN) {
  float infinity = std::numeric_limits<float>::infinity();
  for (WireFormat format : {WireFormat::Int8, WireFormat::Fp8}) {
    WideWorld whole({{0, 0, 2, 0, 2, {1}}}, {{1, infinity}, {1, 2}}, 2, format);
    std::vector<float> sums = whole.sums({{0}, {1}});
    EXPECT_TRUE(std::isnan(sums[0]) && std::isnan(sums[1]));
    EXPECT_FALSE(std::isnan(sums[2]) || std::isnan(sums[3]));
    std::vector<float> after = whole.train({{1}, {1}}, {1, -infinity, 1, 1});
    EXPECT_TRUE(std::isnan(after[2]) && std::isnan(after[3]));
  }
}

TEST(ScaledWireRows, OneDeviceRoundsNothing) {
  WideWorld alone({{0, 0, 1, 0, 2, {0}}}, {{127, 1.25f}}, 1, WireFormat::Int8);
  EXPECT_EQ(alone.sums({{0}}), (std::vector<float>{127, 1.25f}));
}

TEST(ScaledWireRows, CopiesUpdateByTheGradientsAsTheyTravelled) {
  WideWorld copies({{0, 0, 1, 0, 2, {0, 1}}}, {{127, 1.25f}}, 2,
                   WireFormat::Int8);
  EXPECT_EQ(copies.sums({{0}, {0}}),
            (std::vector<float>{127, 1.25f, 127, 1.25f}));
  EXPECT_EQ(copies.train({{0}, {0}}, {127, 1.25f, 127, 1.75f}),
            (std::vector<float>{127 - 254, 1.25f - 3}));
}

/// All of its tables have too many rows for sums of rows to travel.
Model gatheringModel() {
  Model model = makeModel(Optimizer::RowwiseAdagrad);
  model.tables[2].rows = 50;
  return model;
}

/// Bytes sent by all devices in each phase of a training step.
std::map<std::string, int64_t> sentBytes(PlanKind kind, WireType wire) {
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
    auto wide = sentBytes(kind, WireFormat::F32);
    ASSERT_GT(wide["results_exchange"], 0);
    for (WireType wire : kWires) {
      auto narrow = sentBytes(kind, wire);
      for (auto &[phase, bytes] : wide) {
        bool halved =
            (phase == "results_exchange" && wire.results != WireFormat::F32) ||
            (phase == "gradients_exchange" &&
             wire.gradients != WireFormat::F32);
        EXPECT_EQ(bytes, narrow[phase] * (halved ? 2 : 1)) << phase;
      }
    }
  }
}

TEST(WireRows, SumsOfRowsAreRoundedBeforeEachHop) {
  // Row 0: 2047 + 2 becomes 2048 as f16, and 2048 + 1 becomes 2048.
  SmallWorld copies({{0, 0, 2, 0, 1, {0, 1}}}, {2049, 1}, 2, WireFormat::F16);
  EXPECT_EQ(copies.train({{0}, {0}, {1}, {0}, {1}, {1}}, {2047, 2, 0, 1, 5, 0}),
            (std::vector<float>{2049 - 2048, 1 - 5}));
  SmallWorld exact({{0, 0, 2, 0, 1, {0, 1}}}, {2049, 1}, 2, WireFormat::F32);
  EXPECT_EQ(exact.train({{0}, {0}, {1}, {0}, {1}, {1}}, {2047, 2, 0, 1, 5, 0}),
            (std::vector<float>{2049 - 2050, 1 - 5}));
}

TEST(WireBytes, OfRowsWithScalesAreAQuarterAndTheScales) {
  // Rows of f32 that leave a device have dims of 4 bytes a value.
  auto wide = sentBytes(PlanKind::TableWise, WireFormat::F32);
  for (WireFormat format : {WireFormat::Int8, WireFormat::Fp8}) {
    auto narrow = sentBytes(PlanKind::TableWise, format);
    auto mixed = sentBytes(PlanKind::TableWise, {WireFormat::F32, format});
    for (const char *phase : {"results_exchange", "gradients_exchange"}) {
      int64_t scales = narrow[phase] - wide[phase] / 4;
      EXPECT_GT(scales, 0);
      EXPECT_EQ(scales % 4, 0);
      // Rows have at least 5 columns.
      EXPECT_LE(scales, wide[phase] / 5);
    }
    EXPECT_EQ(mixed["results_exchange"], wide["results_exchange"]);
    EXPECT_EQ(mixed["gradients_exchange"], narrow["gradients_exchange"]);
  }
}

TEST(WireBytes, OfGatheredIdsStay) {
  auto wide = sentBytes(PlanKind::Replicated, WireFormat::F32);
  auto narrow = sentBytes(PlanKind::Replicated, WireFormat::F16);
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
  EXPECT_EQ(sentBytes(PlanKind::Replicated, {WireFormat::F16, WireFormat::F32}),
            wide);
  EXPECT_EQ(sentBytes(PlanKind::Replicated, {WireFormat::F32, WireFormat::F16}),
            narrow);
}

} // namespace
} // namespace neuroshard::test
