//===- TrafficTest.cpp - Bytes that travel are those that were planned ----===//
//
// Shows that the planner, the artifact and a running step agree on what every
// device sends, byte for byte: on random cuts, with and without groups, for all
// wire types.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Planner/Traffic.h"
#include "RandomSteps.h"
#include "neuroshard/Artifact/StepTraffic.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace neuroshard::test {
namespace {

/// What a device has sent to others in a phase.
int64_t sentBytes(nsrt_world *world, int device, const std::string &phase) {
  for (int32_t i = 0; i < nsrt_num_phases(); ++i)
    if (nsrt_phase_name(i) == phase)
      return nsrt_device_phase_bytes(nsrt_world_device(world, device), i);
  ADD_FAILURE() << "no phase " << phase;
  return 0;
}

int64_t toOthers(int device, std::initializer_list<const PairBytes *> all) {
  auto from = static_cast<size_t>(device);
  int64_t total = 0;
  for (const PairBytes *bytes : all)
    for (size_t to = 0; to < bytes->size(); ++to)
      total += to == from ? 0 : (*bytes)[from][to];
  return total;
}

void expectSent(nsrt_world *world, int device, const StepTraffic &traffic) {
  int64_t ids = 0, results = 0, gradients = 0;
  for (const ExchangeTraffic &one : traffic.exchanges) {
    ids += toOthers(device, {&one.ids, &one.relayedIds});
    results += toOthers(device, {&one.results, &one.relayedResults});
    gradients +=
        toOthers(device, {&one.gradients, &one.relayedGradients, &one.copies});
  }
  gradients += toOthers(device, {&traffic.copySums, &traffic.averages});
  EXPECT_EQ(sentBytes(world, device, "ids_exchange"), ids);
  EXPECT_EQ(sentBytes(world, device, "results_exchange"), results);
  EXPECT_EQ(sentBytes(world, device, "gradients_exchange"), gradients);
  EXPECT_EQ(sentBytes(world, device, "norm_exchange"),
            toOthers(device, {&traffic.norms}));
}

/// deviceTraffic() has the sums of stepTraffic().
void expectSums(const DeviceTraffic &sums, const StepTraffic &traffic) {
  std::vector<int64_t> forward(sums.forward.size());
  std::vector<int64_t> backward(sums.backward.size());
  auto add = [](const PairBytes &bytes, std::vector<int64_t> &to) {
    for (size_t a = 0; a < bytes.size(); ++a)
      for (size_t b = 0; b < bytes.size(); ++b)
        if (a != b)
          to[a] += bytes[a][b] + bytes[b][a];
  };
  for (const ExchangeTraffic &exchange : traffic.exchanges) {
    add(exchange.results, forward);
    add(exchange.relayedResults, forward);
    add(exchange.gradients, backward);
    add(exchange.relayedGradients, backward);
    add(exchange.copies, backward);
  }
  add(traffic.norms, backward);
  add(traffic.copySums, backward);
  add(traffic.averages, backward);
  EXPECT_EQ(sums.forward, forward);
  EXPECT_EQ(sums.backward, backward);
}

TEST(Traffic, PlannedIsSent) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomPlan plan(random);
    DataMaker maker(plan.model, Data::Integers, static_cast<unsigned>(round));
    std::vector<Batch> batches = maker.batches(plan.batches);
    Manifest artifact = parseManifest(
        writeManifest(describe(plan.model, plan.shards, plan.devices)));
    StepLoad load = loadOf(artifact, artifact.layouts, batches);
    auto sent = [&](Engine engine) {
      return stepTraffic(artifact, artifact.layouts, load, engine);
    };
    StepTraffic onCpus = sent(Engine::Cpu);
    for (Engine engine : {Engine::Cpu, Engine::Gpu})
      expectSums(deviceTraffic(artifact, artifact.layouts, load, engine),
                 sent(engine));
    std::vector<neuroshard::Shard> shards = describeShards(plan);
    EXPECT_EQ(planTraffic(describeProblem(plan, "CPU"), shards, load), onCpus);
    EXPECT_EQ(planTraffic(describeProblem(plan, "H200"), shards, load),
              sent(Engine::Gpu));

    TestWorld world(plan.model, plan.shards, plan.devices);
    ASSERT_TRUE(world.get()) << world.error();
    Oracle oracle(plan.model);
    StepResult result;
    ASSERT_TRUE(
        world.train(batches, maker.gradients(oracle, batches), 0.1F, 1, result))
        << world.error();
    for (int device = 0; device < plan.devices; ++device)
      expectSent(world.get(), device, onCpus);
  }
}

} // namespace
} // namespace neuroshard::test
