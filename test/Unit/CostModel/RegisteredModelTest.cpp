//===- RegisteredModelTest.cpp - Cost models of others by name ------------===//
//
// Shows that a registered model plans as it does when it is given, that wrong
// answers of each kind are one error, and which names are refused.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/CostModel/Plugin.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <limits>
#include <stdexcept>

using namespace neuroshard;
using testing::HasSubstr;

namespace {

ShardingProblem twoTables() {
  ShardingProblem problem;
  problem.tables.resize(2);
  problem.tables[0].name = "user";
  problem.tables[0].rows = 100'000;
  problem.tables[0].dim = 64;
  problem.tables[1].name = "item";
  problem.tables[1].rows = 1'000;
  problem.tables[1].dim = 16;
  problem.features.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    problem.features[i].name = "f" + std::to_string(i);
    problem.features[i].table = static_cast<int>(i);
  }
  problem.batch.globalSize = 256;
  problem.topology = *parseTopology("2xCPU");
  return problem;
}

/// The roofline, with a change to its answers.
class Changed : public CostModel {
public:
  std::string name() const override { return "changed"; }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    roofline->computeMs(sets, out);
    if (changeCompute)
      changeCompute(out);
  }
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> skews,
                                      Direction direction) const override {
    auto times = roofline->communicationMs(traffic, skews, direction);
    if (changeExchange)
      changeExchange(times);
    return times;
  }
  const SumEmbedding *sumEmbedding() const override { return embedding.get(); }
  CostBound lowerBound(std::span<const BoundTable>,
                       const Topology &) const override {
    return bound;
  }

  std::unique_ptr<CostModel> roofline = makeRooflineModel();
  std::function<void(std::span<ComputeMs>)> changeCompute;
  std::function<void(std::vector<double> &)> changeExchange;
  std::unique_ptr<SumEmbedding> embedding;
  CostBound bound;
};

/// One number a shard: its width. What is wrong, if anything, comes from
/// outside.
class Widths final : public SumEmbedding {
public:
  explicit Widths(double factor, double headMs = 1)
      : factor(factor), headMs(headMs) {}
  int size() const override { return 1; }
  void embed(const ShardWork &shard, const DeviceClass &,
             std::span<double> out) const override {
    out[0] = factor * static_cast<double>(shard.width);
  }
  ComputeMs head(std::span<const double> sum, int count,
                 const DeviceClass &) const override {
    return count == 0 ? ComputeMs() : ComputeMs{sum[0] * headMs, sum[0]};
  }

private:
  double factor, headMs;
};

/// What a search with the model says, once it is registered as `name`.
std::string errorOf(const std::string &name,
                    const std::function<void(Changed &)> &change) {
  EXPECT_TRUE(registerCostModel(name, [change](const Topology &) {
    auto model = std::make_unique<Changed>();
    change(*model);
    return model;
  }));
  ShardingProblem problem = twoTables();
  auto model = makeCostModel(name, problem.topology);
  EXPECT_TRUE(model) << toString(model.error());
  auto result = search(problem, **model, {});
  return result ? "" : result.error().str();
}

TEST(RegisteredModel, PlansAsTheModelItself) {
  ASSERT_TRUE(registerCostModel(
      "own-roofline", [](const Topology &) { return makeRooflineModel(); }));
  ShardingProblem problem = twoTables();
  auto named = makeCostModel("own-roofline", problem.topology);
  ASSERT_TRUE(named);
  auto result = search(problem, **named, {});
  auto expected = search(problem, *makeRooflineModel(), {});
  ASSERT_TRUE(result && expected);
  EXPECT_EQ(result->plan.shards, expected->plan.shards);
  EXPECT_EQ(result->breakdown.costMs, expected->breakdown.costMs);
  EXPECT_EQ(result->lowerBoundMs, expected->lowerBoundMs);
  EXPECT_EQ((*named)->name(), "own-roofline");
}

TEST(RegisteredModel, WrongAnswersAreOneError) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(errorOf("right", [](Changed &) {}), "");
  EXPECT_THAT(errorOf("nan",
                      [](Changed &model) {
                        model.changeCompute = [](auto out) {
                          out.back().forwardMs = kNan;
                        };
                      }),
              HasSubstr("cost_model: 'nan': computeMs: time["));
  EXPECT_THAT(errorOf("negative",
                      [](Changed &model) {
                        model.changeCompute = [](auto out) {
                          out.back().backwardMs = -2;
                        };
                      }),
              HasSubstr("backward: expected a finite number of milliseconds, "
                        "at least 0, got: -2"));
  EXPECT_THAT(errorOf("huge",
                      [](Changed &model) {
                        model.changeExchange = [](auto &times) {
                          times[1] = 1e16;
                        };
                      }),
              HasSubstr("communicationMs: time[1]: expected at most 1e15"));
  EXPECT_THAT(errorOf("many",
                      [](Changed &model) {
                        model.changeExchange = [](auto &times) {
                          times.push_back(0);
                        };
                      }),
              HasSubstr("communicationMs: expected 2 times, one per device, "
                        "got: 3"));
  EXPECT_THAT(errorOf("throws",
                      [](Changed &model) {
                        model.changeCompute = [](auto) {
                          throw std::runtime_error("no licence");
                        };
                      }),
              HasSubstr("'throws': computeMs threw: no licence"));
  EXPECT_THAT(
      errorOf("bound", [](Changed &model) { model.bound.maxForwardMs = -1; }),
      HasSubstr("lowerBound: expected a finite number"));
}

TEST(RegisteredModel, WrongEmbeddingsAreOneError) {
  auto withWidths = [](double factor, double headMs) {
    return [=](Changed &model) {
      model.embedding = std::make_unique<Widths>(factor, headMs);
    };
  };
  EXPECT_EQ(errorOf("widths", withWidths(1, 1)), "");
  EXPECT_THAT(errorOf("embed", withWidths(INFINITY, 1)),
              HasSubstr("embed: number 0 of 1: expected a finite number"));
  EXPECT_THAT(errorOf("head", withWidths(1, -1)),
              HasSubstr("forward: expected a finite number"));
}

TEST(RegisteredModel, NamesThatCannotBe) {
  CostModelMaker maker = [](const Topology &) { return makeRooflineModel(); };
  for (const char *name : {"", "auto", "roofline", "reference", "a.json",
                           "a.safetensors", "a,b", "a b", "../a", "a\n"})
    EXPECT_FALSE(registerCostModel(name, maker)) << name;
  EXPECT_FALSE(registerCostModel("null", nullptr));
  ASSERT_TRUE(registerCostModel("once", maker));
  auto again = registerCostModel("once", maker);
  ASSERT_FALSE(again);
  EXPECT_THAT(toString(again.error()), HasSubstr("registered already"));
  EXPECT_THAT(registeredCostModels(), testing::Contains("once"));
}

TEST(RegisteredModel, AModelThatCannotBeMadeSaysWhy) {
  ASSERT_TRUE(registerCostModel(
      "refuses", [](const Topology &) -> Expected<std::unique_ptr<CostModel>> {
        return failure("topology", "expected one device");
      }));
  ASSERT_TRUE(
      registerCostModel("empty", [](const Topology &) { return nullptr; }));
  auto refused = makeCostModel("refuses", *parseTopology("2xCPU"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(toString(refused.error()),
            "cost model 'refuses': topology: expected one device");
  auto empty = makeCostModel("empty", *parseTopology("2xCPU"));
  ASSERT_FALSE(empty);
  EXPECT_THAT(toString(empty.error()), HasSubstr("made none"));
  auto misspelt = makeCostModel("refusse", *parseTopology("2xCPU"));
  ASSERT_FALSE(misspelt);
  EXPECT_THAT(toString(misspelt.error()), HasSubstr("did you mean 'refuses'?"));
}

} // namespace
