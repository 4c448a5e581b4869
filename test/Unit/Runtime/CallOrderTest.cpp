//===- CallOrderTest.cpp - Ranks that exchange in different orders --------===//

#include "TestModels.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

/// For two ranks: which of two inputs has its results exchanged first.
using FirstInputs = std::array<size_t, 2>;

/// Routes two inputs of equal sizes and exchanges the results of both.
void exchangeBoth(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  size_t first = static_cast<const FirstInputs *>(args[1])->at(
      static_cast<size_t>(nsrt_device_rank(device)));
  const int32_t ids[] = {5, 6};
  const int64_t offsets[] = {0, 2, 2};
  nsrt_routed *routed[2];
  for (nsrt_routed *&one : routed)
    one = nsrt_route(device, 1, ids, 2, offsets, 3, nullptr);
  for (size_t one : {first, 1 - first}) {
    nsrt_partials *partials = nsrt_lookup(device, routed[one]);
    nsrt_results_start(device, routed[one], partials);
    nsrt_partials_release(device, partials);
  }
  for (nsrt_routed *one : routed)
    nsrt_routed_release(device, one);
}

class CallOrder : public testing::Test {
protected:
  CallOrder()
      : model(makeModel(Optimizer::None)),
        world(model, makePlan(model, PlanKind::Row, 2), 2) {
    for (int rank = 0; rank < 2; ++rank)
      nsrt_world_register(world.get(), rank, "exchange", exchangeBoth);
  }

  /// "", or the error.
  std::string exchange(FirstInputs first) {
    std::vector<std::vector<void *>> arguments;
    std::vector<void **> args;
    for (int rank = 0; rank < 2; ++rank)
      arguments.push_back({nsrt_world_device(world.get(), rank), &first});
    for (std::vector<void *> &one : arguments)
      args.push_back(one.data());
    return nsrt_invoke_all(world.get(), "exchange", args.data()) == 0
               ? ""
               : nsrt_last_error();
  }

  Model model;
  TestWorld world;
};

TEST_F(CallOrder, AnyOrderThatAllRanksHave) {
  for (FirstInputs first : {FirstInputs{0, 0}, {1, 1}, {0, 0}})
    EXPECT_EQ(exchange(first), "");
}

/// Ranks with copies that drift: rank 1 exchanges while rank 0 averages.
TEST(DriftOrder, ARankThatDoesNotAverageIsToldAtOnce) {
  Model model = makeModel(Optimizer::Sgd);
  std::vector<ShardPlace> plan = makePlan(model, PlanKind::Replicated, 2);
  for (ShardPlace &shard : plan) {
    shard.devices = {0, 1};
    shard.syncEvery = 2;
  }
  TestWorld world(model, plan, 2);
  ASSERT_TRUE(world.get()) << world.error();
  for (int rank = 0; rank < 2; ++rank)
    nsrt_world_register(world.get(), rank, "exchange", exchangeBoth);
  nsrt_device *devices[] = {nsrt_world_device(world.get(), 0),
                            nsrt_world_device(world.get(), 1)};
  FirstInputs first = {0, 0};
  std::array<std::string, 2> errors;
  auto onRank = [&](size_t rank, bool averages) {
    void *args[] = {devices[rank], &first};
    if (averages ? nsrt_device_average_copies(devices[rank])
                 : nsrt_invoke(devices[rank], "exchange", args))
      errors[rank] = nsrt_last_error();
  };
  auto onBoth = [&](bool firstAverages, bool secondAverages) {
    errors = {};
    std::thread other(onRank, 1, secondAverages);
    onRank(0, firstAverages);
    other.join();
  };
  onBoth(true, true);
  EXPECT_EQ(errors, (std::array<std::string, 2>{}));
  onBoth(false, false);
  EXPECT_EQ(errors, (std::array<std::string, 2>{}));
  onBoth(true, false);
  EXPECT_THAT(errors[0] + errors[1], HasSubstr("averages copies"));
  EXPECT_THAT(errors[0] + errors[1],
              HasSubstr("all ranks must run the same function"));
  EXPECT_TRUE(!errors[0].empty() && !errors[1].empty());
}

TEST_F(CallOrder, AnotherOrderIsNoticedByTheNextIds) {
  EXPECT_EQ(exchange({0, 1}), "");
  EXPECT_THAT(exchange({0, 0}), HasSubstr("has exchanged results and gradients "
                                          "in another order than rank "));
  EXPECT_EQ(exchange({0, 0}), "");
}

} // namespace
