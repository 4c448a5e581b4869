//===- FailuresTest.cpp - A failed step ends everywhere, once -------------===//
//
// Shows that an error on one rank ends the step on all ranks with the same
// cause, that nobody waits for ever, and that the next step works.
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace neuroshard::test;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

class Failures : public testing::Test {
protected:
  static constexpr int devices = 4;

  Failures()
      : model(makeModel(Optimizer::Sgd)),
        world(model, makePlan(model, PlanKind::Mixed, devices), devices),
        oracle(model), maker(model, Data::Integers, 1) {
    maker.fillTables(oracle, world);
    batches = maker.batches({12, 8}); // 3 and 2 bags per rank
    gradients = maker.gradients(oracle, batches);
  }

  /// A batch with one more id in a bag.
  std::vector<Batch> withId(size_t exchange, size_t feature, size_t bag,
                            int64_t id) {
    std::vector<Batch> bad = batches;
    bad[exchange].ids[feature][bag].push_back(id);
    bad[exchange].weights[feature][bag].push_back(1);
    return bad;
  }

  std::vector<std::string> deviceErrors() {
    std::vector<std::string> errors;
    for (int rank = 0; rank < devices; ++rank)
      errors.push_back(nsrt_device_error(nsrt_world_device(world.get(), rank)));
    return errors;
  }

  void expectNextStepWorks() {
    StepResult result;
    ASSERT_TRUE(world.forward(batches, result)) << world.error();
    EXPECT_EQ(result.results, oracle.forward(batches).results);
    EXPECT_THAT(deviceErrors(), Each(""));
  }

  /// Runs a host function on all devices with `context` as its argument.
  std::string invokeAll(nsrt_host_function function, void *context) {
    for (int program = 0; program < devices; ++program)
      nsrt_world_register(world.get(), program, "custom", function);
    std::vector<std::vector<void *>> args;
    std::vector<void **> pointers;
    for (int rank = 0; rank < devices; ++rank)
      args.push_back({nsrt_world_device(world.get(), rank), context});
    for (auto &list : args)
      pointers.push_back(list.data());
    return nsrt_invoke_all(world.get(), "custom", pointers.data()) == 0
               ? ""
               : nsrt_last_error();
  }

  Model model;
  TestWorld world;
  Oracle oracle;
  DataMaker maker;
  std::vector<Batch> batches;
  std::vector<Values> gradients;
};

TEST_F(Failures, BadIdIsNamedOnEveryRank) {
  for (int rank = 0; rank < devices; ++rank)
    for (int64_t id :
         {int64_t{11}, static_cast<int64_t>(-1), INT64_MAX, INT64_MIN}) {
      size_t bag =
          static_cast<size_t>(rank) * 3 + 2; // the third of the rank's bags
      std::vector<Batch> bad = withId(0, 2, bag, id);
      StepResult result;
      EXPECT_FALSE(world.forward(bad, result));
      std::string expected = "rank " + std::to_string(rank) +
                             ": input \"f0, ..., f4 (5 features)\": feature "
                             "\"f2\", bag 2, position " +
                             std::to_string(bad[0].ids[2][bag].size() - 1) +
                             " (id ";
      EXPECT_THAT(world.error(), StartsWith(expected));
      EXPECT_THAT(
          world.error(),
          HasSubstr(": id " + std::to_string(id) +
                    " is out of range for table \"shop\" with 11 rows"));
      EXPECT_THAT(deviceErrors(), Each(world.error()));
      for (const Values &values : result.results)
        for (const auto &rows : values)
          EXPECT_THAT(rows, Each(0.0f));
      expectNextStepWorks();
    }
}

TEST_F(Failures, BadIdInASiftedFeature) {
  StepResult result;
  EXPECT_FALSE(world.forward(withId(1, 0, 0, 64), result));
  EXPECT_THAT(world.error(),
              AllOf(StartsWith("rank 0: input \"f0, f1\": feature \"f0\", "
                               "bag 0, position "),
                    HasSubstr("id 64 is out of range for table \"word\"")));
  expectNextStepWorks();
}

TEST_F(Failures, FirstOfTwoBadRanksIsNamed) {
  std::vector<Batch> bad = withId(0, 2, 11, 400);
  bad[0].ids[2][4].push_back(300);
  bad[0].weights[2][4].push_back(1);
  StepResult result;
  EXPECT_FALSE(world.forward(bad, result));
  EXPECT_THAT(world.error(), AllOf(StartsWith("rank 1:"), HasSubstr("300")));
  EXPECT_THAT(deviceErrors(), Each(world.error()));
}

TEST_F(Failures, FailedTrainingStepChangesNoTable) {
  StepResult result;
  // A gradient for the longer result of the unpooled lookup as well.
  std::vector<Batch> bad = withId(0, 2, 5, 99);
  EXPECT_FALSE(world.train(bad, maker.gradients(oracle, bad), 1.0f, 1, result));
  for (int t = 0; t < static_cast<int>(model.tables.size()); ++t)
    EXPECT_EQ(world.table(t), oracle.tables[static_cast<size_t>(t)]);
  for (const auto &feature : result.weightGradients[0])
    for (const auto &bag : feature)
      EXPECT_THAT(bag, Each(0.0f));
  expectNextStepWorks();
}

/// Calls nsrt_route on exchange 1 (features f0 and f1, i32 ids); rank 2 gives
/// the offsets it is told to.
struct OffsetCase {
  std::vector<int64_t> offsets;
  int64_t numIds;
  const char *message;
};

void routeWithOffsets(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  const auto &test = *static_cast<const OffsetCase *>(args[1]);
  static const std::vector<int32_t> ids = {1, 2, 3, 4};
  std::vector<int64_t> offsets = {0, 1, 2, 3, 4};
  int64_t numIds = 4;
  if (nsrt_device_rank(device) == 2) {
    offsets = test.offsets;
    numIds = test.numIds;
  }
  nsrt_routed *routed =
      nsrt_route(device, 1, ids.data(), numIds, offsets.data(),
                 static_cast<int64_t>(offsets.size()), nullptr);
  nsrt_partials_release(device, nsrt_lookup(device, routed));
  nsrt_routed_release(device, routed);
}

TEST_F(Failures, BadOffsets) {
  const std::vector<OffsetCase> cases = {
      {{1, 1, 2, 3, 4}, 4, "offsets must start at 0, found 1"},
      {{0, 2, 1, 3, 4}, 4, "feature \"f0\": offset 1 is 2, the next 1"},
      {{0, 1, 2, 3, INT64_MAX},
       4,
       "feature \"f1\": offset 1 is 1, the next 9223372036854775805 (offset 3 "
       "of the input is 3, the next 9223372036854775807)"},
      {{0, 1, 2, 3, INT64_MIN},
       4,
       "(offset 3 of the input is 3, the next -9223372036854775808)"},
      {{0, 1, 2, 3, 3}, 4, "must be the number of ids 4, found 3"},
      {{0, 1, 2, 4}, 4, "features x batch + 1 offsets (2 features), found 4"},
      {{}, 4, "features x batch + 1 offsets (2 features), found 0"},
      {{0, 1, 2, 3, 4}, -1, "negative number of ids -1"},
  };
  for (OffsetCase test : cases) {
    EXPECT_THAT(invokeAll(routeWithOffsets, &test),
                AllOf(StartsWith("rank 2: input \"f0, f1\": "),
                      HasSubstr(test.message)));
    EXPECT_EQ(deviceErrors(),
              std::vector<std::string>(devices, nsrt_last_error()));
  }
  expectNextStepWorks();
}

TEST_F(Failures, MissingWeights) {
  auto routeWithoutWeights = [](void **args) {
    auto *device = static_cast<nsrt_device *>(args[0]);
    static const int64_t ids[] = {1}, offsets[] = {0, 1, 1, 1, 1, 1};
    nsrt_routed_release(device,
                        nsrt_route(device, 0, ids, 1, offsets, 6, nullptr));
  };
  EXPECT_THAT(invokeAll(routeWithoutWeights, nullptr),
              HasSubstr("rank 0: input \"f0, ..., f4 (5 features)\": the input "
                        "is weighted, but its weights are null"));
}

TEST_F(Failures, OtherNumberOfWeights) {
  auto route = [](void **args) {
    auto *device = static_cast<nsrt_device *>(args[0]);
    static const int64_t ids[] = {1}, offsets[] = {0, 1, 1, 1, 1, 1};
    static const float weights[] = {1};
    nsrt_check_weights(device, 0, 1, nsrt_device_rank(device) == 1 ? 0 : 1);
    nsrt_routed_release(device,
                        nsrt_route(device, 0, ids, 1, offsets, 6, weights));
  };
  EXPECT_THAT(invokeAll(route, nullptr),
              HasSubstr("rank 1: input \"f0, ..., f4 (5 features)\": expected "
                        "one weight for each of the 1 ids, found 0"));
}

/// A function that stays on its devices until it is let go.
struct Hold {
  std::atomic<int> entered = 0;
  std::atomic<bool> released = false;

  void waitFor(int ranks) const {
    while (entered < ranks)
      std::this_thread::yield();
  }
};

void holdDevice(void **args) {
  auto &hold = *static_cast<Hold *>(args[1]);
  ++hold.entered;
  while (!hold.released)
    std::this_thread::yield();
}

TEST_F(Failures, CallsMeanwhileAreRefusedAndChangeNothing) {
  Hold hold;
  std::string held;
  std::thread other([&] { held = invokeAll(holdDevice, &hold); });
  hold.waitFor(devices);
  StepResult result;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(world.forward(batches, result));
    EXPECT_THAT(world.error(), HasSubstr("one function at a time"));
  }
  hold.released = true;
  other.join();
  EXPECT_EQ(held, "");
  expectNextStepWorks();
}

TEST_F(Failures, ACallBesideAStepOfOneDeviceTakesNoOther) {
  for (int program = 0; program < devices; ++program)
    nsrt_world_register(world.get(), program, "hold", holdDevice);
  Hold hold;
  nsrt_device *device = nsrt_world_device(world.get(), 2);
  void *args[] = {device, &hold};
  std::thread other([&] { nsrt_invoke(device, "hold", args); });
  hold.waitFor(1);
  StepResult result;
  EXPECT_FALSE(world.forward(batches, result));
  EXPECT_THAT(world.error(), StartsWith("device 2 is already in a step"));
  hold.released = true;
  other.join();
  nsrt_world_reset(world.get());
  expectNextStepWorks();
}

TEST_F(Failures, ClosingWaitsForACall) {
  auto closed = std::make_unique<TestWorld>(
      model, makePlan(model, PlanKind::Mixed, 2), 2);
  for (int program = 0; program < 2; ++program)
    nsrt_world_register(closed->get(), program, "hold", holdDevice);
  Hold hold;
  void *args[2][2] = {{nsrt_world_device(closed->get(), 0), &hold},
                      {nsrt_world_device(closed->get(), 1), &hold}};
  void **pointers[] = {args[0], args[1]};
  std::thread caller([&] { nsrt_invoke_all(closed->get(), "hold", pointers); });
  hold.waitFor(2);
  std::atomic<bool> isClosed = false;
  std::thread closer([&] {
    closed.reset();
    isClosed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(isClosed);
  hold.released = true;
  closer.join();
  caller.join();
}

TEST_F(Failures, RankThatLeavesEarlyIsNamed) {
  auto leaveEarly = [](void **args) {
    auto *device = static_cast<nsrt_device *>(args[0]);
    OffsetCase good{{0, 1, 2, 3, 4}, 4, ""};
    void *rest[] = {device, &good};
    if (nsrt_device_rank(device) != 3)
      routeWithOffsets(rest);
  };
  for (int round = 0; round < 20; ++round)
    EXPECT_THAT(invokeAll(leaveEarly, nullptr),
                StartsWith("rank 3: left the step before"));
  expectNextStepWorks();
}

TEST_F(Failures, RanksThatRunDifferentExchanges) {
  auto mixUp = [](void **args) {
    auto *device = static_cast<nsrt_device *>(args[0]);
    static const int64_t ids[] = {0};
    static const int64_t offsets[] = {0, 0, 0, 0, 0, 0, 0};
    static const float weights[] = {0};
    int64_t exchange = nsrt_device_rank(device) == 1;
    nsrt_routed_release(device, nsrt_route(device, exchange, ids, 0, offsets,
                                           exchange ? 5 : 6, weights));
  };
  EXPECT_THAT(invokeAll(mixUp, nullptr),
              HasSubstr("all ranks must run the same function"));
  expectNextStepWorks();
}

TEST_F(Failures, UnknownExchangeOnOneRankNamesThatRank) {
  auto unknown = [](void **args) {
    auto *device = static_cast<nsrt_device *>(args[0]);
    static const int64_t offsets[] = {0, 0, 0};
    int64_t exchange = nsrt_device_rank(device) == 2 ? 7 : 1;
    nsrt_routed_release(
        device, nsrt_route(device, exchange, nullptr, 0, offsets, 3, nullptr));
  };
  EXPECT_EQ(invokeAll(unknown, nullptr),
            "rank 2: the manifest has no exchange 7");
  expectNextStepWorks();
}

/// Handles of a step in two functions, as with overlapped dense work.
struct TwoPart {
  std::vector<nsrt_routed *> routed{4};
  int64_t badRank = -1;
  std::vector<std::vector<float>> results{4};
};

void startPart(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto &step = *static_cast<TwoPart *>(args[1]);
  int rank = nsrt_device_rank(device);
  const int32_t ids[] = {5, rank == step.badRank ? 5000 : 6};
  const int64_t offsets[] = {0, 2, 2};
  step.routed[static_cast<size_t>(rank)] =
      nsrt_route(device, 1, ids, 2, offsets, 3, nullptr);
}

void waitPart(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto &step = *static_cast<TwoPart *>(args[1]);
  size_t rank = static_cast<size_t>(nsrt_device_rank(device));
  nsrt_partials *partials = nsrt_lookup(device, step.routed[rank]);
  nsrt_results_start(device, step.routed[rank], partials);
  step.results[rank].assign(12, -1);
  nsrt_result_wait(device, step.routed[rank], partials, 0, 0,
                   step.results[rank].data());
  nsrt_partials_release(device, partials);
  nsrt_routed_release(device, step.routed[rank]);
}

TEST_F(Failures, HandlesCarryAFailureIntoTheNextFunction) {
  TwoPart step;
  step.badRank = 1;
  std::string cause = invokeAll(startPart, &step);
  EXPECT_THAT(cause, AllOf(StartsWith("rank 1:"), HasSubstr("id 5000")));
  EXPECT_EQ(invokeAll(waitPart, &step), cause);
  EXPECT_THAT(step.results[0], Each(0.0f));
}

/// Asks for results where there is no memory for them.
void waitWithoutMemory(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto &step = *static_cast<TwoPart *>(args[1]);
  size_t rank = static_cast<size_t>(nsrt_device_rank(device));
  nsrt_partials *partials = nsrt_lookup(device, step.routed[rank]);
  nsrt_results_start(device, step.routed[rank], partials);
  int32_t type = 0;
  void *none = nullptr;
  int64_t stride = 12;
  nsrt_results_wait(device, step.routed[rank], partials, 1, &type, &none,
                    &stride);
  nsrt_partials_release(device, partials);
  nsrt_routed_release(device, step.routed[rank]);
}

TEST_F(Failures, ResultsNeedMemory) {
  TwoPart step;
  EXPECT_EQ(invokeAll(startPart, &step), "");
  EXPECT_THAT(invokeAll(waitWithoutMemory, &step),
              HasSubstr("no memory for result 0 (rows: 1)"));
  expectNextStepWorks();
}

TEST_F(Failures, AStepMaySpanTwoFunctions) {
  TwoPart step;
  EXPECT_EQ(invokeAll(startPart, &step), "");
  EXPECT_EQ(invokeAll(waitPart, &step), "");
  std::vector<float> expected;
  for (size_t c = 0; c < 12; ++c)
    expected.push_back(oracle.tables[3][5 * 12 + c] +
                       oracle.tables[3][6 * 12 + c]);
  EXPECT_THAT(step.results, Each(expected));
}

TEST_F(Failures, UnknownFunction) {
  void **args[devices] = {};
  EXPECT_NE(nsrt_invoke_all(world.get(), "backward", args), 0);
  EXPECT_STREQ(nsrt_last_error(),
               "in-process program has no function \"backward\"");
  EXPECT_NE(nsrt_invoke(nsrt_world_device(world.get(), 0), "backward", nullptr),
            0);
  EXPECT_EQ(nsrt_world_reset(world.get()), 0);
  expectNextStepWorks();
}

TEST(Closing, EndsAStepThatWaitsForOtherRanks) {
  Model model = makeModel(Optimizer::None);
  auto world =
      std::make_unique<TestWorld>(model, makePlan(model, PlanKind::Row, 2), 2);
  static std::atomic<bool> entered;
  entered = false;
  auto waitForOther = [](void **args) {
    entered = true;
    OffsetCase good{{0, 1, 2, 3, 4}, 4, ""};
    void *rest[] = {args[0], &good};
    routeWithOffsets(rest);
  };
  nsrt_world_register(world->get(), 0, "wait", waitForOther);
  nsrt_device *device = nsrt_world_device(world->get(), 0);
  std::string error;
  std::thread runner([&] {
    void *args[] = {device};
    if (nsrt_invoke(device, "wait", args) != 0)
      error = nsrt_last_error();
  });
  while (!entered)
    std::this_thread::yield();
  world.reset();
  runner.join();
  EXPECT_EQ(error, "the world was closed during the step");
}

TEST(SingleInvocations, RunOneThreadPerDevice) {
  Model model = makeModel(Optimizer::None);
  TestWorld world(model, makePlan(model, PlanKind::Row, 2), 2);
  std::vector<std::thread> threads;
  std::vector<int> status(2, -1);
  for (int rank = 0; rank < 2; ++rank) {
    nsrt_world_register(world.get(), rank, "route", routeWithOffsets);
    threads.emplace_back([&, rank] {
      OffsetCase good{{0, 1, 2, 3, 4}, 4, ""};
      nsrt_device *device = nsrt_world_device(world.get(), rank);
      void *args[] = {device, &good};
      status[static_cast<size_t>(rank)] = 0;
      for (int step = 0; step < 50; ++step)
        status[static_cast<size_t>(rank)] |= nsrt_invoke(device, "route", args);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(status, Each(0));
}

TEST(SingleInvocations, NeedNoResetAfterABadId) {
  Model model = makeModel(Optimizer::None);
  TestWorld world(model, makePlan(model, PlanKind::Row, 2), 2);
  std::vector<std::thread> threads;
  std::vector<std::vector<std::string>> errors(2);
  for (int rank = 0; rank < 2; ++rank) {
    nsrt_world_register(world.get(), rank, "start", startPart);
    nsrt_world_register(world.get(), rank, "wait", waitPart);
  }
  TwoPart steps[2];
  steps[0].badRank = 1;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      nsrt_device *device = nsrt_world_device(world.get(), rank);
      for (TwoPart &step : steps) {
        void *args[] = {device, &step};
        for (const char *name : {"start", "wait"}) {
          nsrt_invoke(device, name, args);
          errors[static_cast<size_t>(rank)].push_back(
              nsrt_device_error(device));
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_THAT(errors[0][0], HasSubstr("id 5000 is out of range"));
  EXPECT_EQ(errors[0][1], errors[0][0]);
  EXPECT_EQ(errors[0][2], "");
  EXPECT_EQ(errors[0][3], "");
}

} // namespace
