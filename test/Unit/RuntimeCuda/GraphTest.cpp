//===- GraphTest.cpp - Steps in CUDA graphs, and steps that repeat --------===//
//
// Shows that a captured step keeps its own arrays, and that a repeated step
// uploads nothing.
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"

namespace neuroshard::test {
namespace {

/// A model with everything that fits one device: a shared table, column and
/// row shards, two inputs, sums, means, weights, ids that are not pooled.
Model mixedModel() {
  Model model;
  model.tables = {{20, 8}, {30, 12, Rule::RowwiseAdagrad}, {9, 5}};
  model.exchanges = {
      {8, 2, true, {{0, 0}, {0, 1, Bags::Mean}, {1, 1, Bags::Sum, true}}},
      {4, 1, false, {{2, 0, Bags::None}, {0, 0}}}};
  model.shards = {{0, 0, 20, 0, 8, 0},
                  {1, 0, 30, 0, 4, 0},
                  {1, 0, 30, 4, 12, 0},
                  {2, 0, 4, 0, 5, 0},
                  {2, 4, 9, 0, 5, 0}};
  return model;
}

class GraphTest : public FakeTest {
protected:
  GraphTest() : simulation(mixedModel(), 7), artifact(mixedModel(), fake) {}

  void forward(nsc_device *device, const StepCase &step,
               int32_t how = NSC_TRAINING) {
    std::vector<nsc_part> parts = step.raw();
    ASSERT_EQ(nsc_forward(device, parts.data(),
                          static_cast<int32_t>(parts.size()), how, stream),
              NSC_OK)
        << nsc_last_error(device);
  }

  void backward(nsc_device *device, const StepCase &step) {
    ASSERT_EQ(nsc_backward(device, step.gradients.data(),
                           static_cast<int32_t>(step.gradients.size()), stream),
              NSC_OK)
        << nsc_last_error(device);
    ASSERT_EQ(nsc_backward_apply(device, stream), NSC_OK)
        << nsc_last_error(device);
  }

  void setStep(nsc_device *device, float rate) {
    ASSERT_EQ(nsc_set_step(device, rate, 1, stream), NSC_OK);
  }

  void expect(nsc_device *device) {
    ASSERT_EQ(nsc_check(device, stream), NSC_OK) << nsc_last_error(device);
    simulation.expectTables(device, 0);
  }

  /// Launches of a kernel, or of all its bodies.
  int64_t launchesOf(const std::string &kernel) const {
    return std::count_if(fake.launches.begin(), fake.launches.end(),
                         [&](const fake::Launch &launch) {
                           return launch.kernel == kernel ||
                                  launch.kernel.starts_with(kernel + "_");
                         });
  }

  Simulation simulation;
  Artifact artifact;
};

TEST_F(GraphTest, ReplaysFollowTheirIdsGradientsAndRates) {
  StepCase step = simulation.partStep(0), other = simulation.partStep(0);
  OpenDevice device(artifact);
  simulation.fillTables(device, 0);
  setStep(device, 0.5f);
  fake.beginCapture(stream);
  forward(device, step);
  backward(device, step);
  fake::Graph graph = fake.endCapture(stream);
  expect(device); // capturing runs nothing

  for (float rate : {0.5f, 0.25f, 1.0f}) {
    // Steps between replays have other sizes and arrays.
    setStep(device, rate);
    forward(device, other);
    backward(device, other);
    simulation.update(other, 0, rate);
    ASSERT_EQ(nsc_check(device, stream), NSC_OK);

    simulation.redraw(step, 0);
    fake.launchGraph(graph, stream);
    ASSERT_EQ(nsc_check(device, stream), NSC_OK);
    simulation.expectResults(step, 0);
    simulation.update(step, 0, rate);
    expect(device);
  }
}

TEST_F(GraphTest, MemoryOfAGraphStaysWhenLargerStepsCome) {
  StepCase small = simulation.partStep(0);
  std::vector<StepCase> steps;
  OpenDevice device(artifact);
  simulation.fillTables(device, 0);
  setStep(device, 0.5f);
  fake.beginCapture(stream);
  forward(device, small);
  backward(device, small);
  fake::Graph graph = fake.endCapture(stream);
  // Enough rotating steps to evict every plan that may be.
  for (int i = 0; i < 20; ++i) {
    steps.push_back(simulation.partStep(0));
    forward(device, steps.back());
    backward(device, steps.back());
    simulation.update(steps.back(), 0, 0.5f);
  }
  fake.launchGraph(graph, stream);
  simulation.update(small, 0, 0.5f);
  expect(device);
}

TEST_F(GraphTest, ForwardAndBackwardMayBeTwoGraphs) {
  StepCase step = simulation.partStep(0);
  OpenDevice device(artifact);
  simulation.fillTables(device, 0);
  setStep(device, 0.5f);
  fake.beginCapture(stream);
  forward(device, step, NSC_TRAINING_JOINED);
  fake::Graph first = fake.endCapture(stream);
  fake.beginCapture(stream);
  backward(device, step);
  fake::Graph second = fake.endCapture(stream);
  for (int i = 0; i < 2; ++i) {
    fake.launchGraph(first, stream);
    fake.launchGraph(second, stream);
    simulation.update(step, 0, 0.5f);
  }
  expect(device);
}

TEST_F(GraphTest, AnUnjoinedForwardCannotEndItsCapture) {
  // What NSC_TRAINING_JOINED is for.
  StepCase step = simulation.partStep(0);
  OpenDevice device(artifact);
  fake.beginCapture(stream);
  forward(device, step);
  EXPECT_THROW(fake.endCapture(stream), std::runtime_error);
}

TEST_F(GraphTest, CaptureWaitsForASortThatNobodyJoined) {
  StepCase step = simulation.partStep(0);
  OpenDevice device(artifact);
  simulation.fillTables(device, 0);
  setStep(device, 0.5f);
  forward(device, step);
  fake.beginCapture(stream);
  forward(device, step);
  backward(device, step);
  fake::Graph graph = fake.endCapture(stream);
  fake.launchGraph(graph, stream);
  simulation.update(step, 0, 0.5f);
  expect(device);
}

TEST_F(GraphTest, HalvesOfAStepAreCapturedTogether) {
  StepCase step = simulation.partStep(0);
  OpenDevice device(artifact);
  setStep(device, 0.5f);
  forward(device, step, NSC_TRAINING_JOINED);
  fake.beginCapture(stream);
  EXPECT_EQ(nsc_backward(device, step.gradients.data(),
                         static_cast<int32_t>(step.gradients.size()), stream),
            NSC_ERROR);
  EXPECT_THAT(device.error(), testing::HasSubstr("capture both or none"));
  EXPECT_EQ(nsc_check(device, stream), NSC_ERROR);
  std::vector<nsc_part> parts = step.raw();
  EXPECT_EQ(nsc_prepare(device, parts.data(),
                        static_cast<int32_t>(parts.size()), NSC_TRAINING,
                        stream),
            NSC_ERROR);
  fake.endCapture(stream);
}

TEST_F(GraphTest, AStepSeenBeforeUploadsAndAllocatesNothing) {
  StepCase step = simulation.partStep(0);
  OpenDevice device(artifact);
  simulation.fillTables(device, 0);
  setStep(device, 0.5f);
  // The first finds out where gradients are, the second uses it.
  for (int i = 0; i < 2; ++i) {
    forward(device, step);
    backward(device, step);
  }
  int64_t allocations = fake.deviceAllocations + fake.hostAllocations;
  int64_t uploads = fake.uploads, waits = fake.waits;
  fake.launches.clear();
  for (int i = 0; i < 3; ++i) {
    setStep(device, 0.5f);
    forward(device, step);
    backward(device, step);
  }
  EXPECT_EQ(fake.deviceAllocations + fake.hostAllocations, allocations);
  EXPECT_EQ(fake.uploads, uploads);
  EXPECT_EQ(fake.waits, waits);
  for (const char *kernel :
       {"nsg_lookup", "nsg_expand", "nsg_sort", "nsg_ranges"})
    EXPECT_EQ(launchesOf(kernel), 3) << kernel;
  // Slots that are updated in each way have two dims.
  for (const char *kernel : {"nsg_update", "nsg_reduce", "nsg_apply"})
    EXPECT_EQ(launchesOf(kernel), 6) << kernel;
  for (int i = 0; i < 5; ++i)
    simulation.update(step, 0, 0.5f);
  expect(device);
}

TEST_F(GraphTest, PreparedStepsAllocateNothing) {
  StepCase step = simulation.partStep(0);
  OpenDevice device(artifact);
  setStep(device, 0.5f);
  std::vector<nsc_part> parts = step.raw();
  ASSERT_EQ(nsc_prepare(device, parts.data(),
                        static_cast<int32_t>(parts.size()), NSC_TRAINING,
                        stream),
            NSC_OK)
      << device.error();
  EXPECT_TRUE(fake.launches.empty());
  int64_t allocations = fake.deviceAllocations + fake.hostAllocations;
  int64_t uploads = fake.uploads;
  forward(device, step);
  EXPECT_EQ(fake.deviceAllocations + fake.hostAllocations, allocations);
  EXPECT_EQ(fake.uploads, uploads);
}

TEST_F(GraphTest, NewGradientsInTheSameOrderCostOneUpload) {
  StepCase step = simulation.partStep(0);
  std::vector<DeviceArray<float>> buffers;
  auto moveGradients = [&](int64_t gap) {
    // One array with all gradients, each `gap` floats after the last.
    int64_t size = 0;
    for (size_t i = 0; i < step.parts.size(); ++i)
      size += static_cast<int64_t>(step.parts[i].bags.size()) *
                  step.gradients[i].stride +
              gap;
    buffers.emplace_back(static_cast<size_t>(size));
    float *to = buffers.back().data();
    for (size_t i = 0; i < step.parts.size(); ++i) {
      nsc_gradient &gradient = step.gradients[i];
      size_t count =
          step.parts[i].bags.size() * static_cast<size_t>(gradient.stride);
      std::copy_n(gradient.gradient, count, to);
      gradient.gradient = to;
      gradient.weight_gradient = nullptr; // its task would have new addresses
      to += static_cast<int64_t>(count) + gap;
    }
  };
  OpenDevice device(artifact);
  simulation.fillTables(device, 0);
  setStep(device, 0.5f);
  auto run = [&] {
    fake.launches.clear();
    fake.uploads = 0;
    forward(device, step);
    backward(device, step);
    simulation.update(step, 0, 0.5f);
  };
  moveGradients(0);
  run(); // results are elsewhere: expanded again
  EXPECT_EQ(launchesOf("nsg_expand"), 2);
  moveGradients(0);
  run();
  EXPECT_EQ(launchesOf("nsg_expand"), 1);
  EXPECT_EQ(fake.uploads, 1); // where the first gradient is
  moveGradients(8);
  run(); // other distances
  EXPECT_EQ(launchesOf("nsg_expand"), 2);
  expect(device);
}

TEST_F(GraphTest, LongRunsAreAddedUpInChunks) {
  // Two of three rows have hundreds of ids; slots differ in width.
  Model model;
  model.tables = {{2, 5}, {1, 13}};
  model.exchanges = {{8, 2, false, {{0, 0}, {1, 1}}}};
  model.placeWhole();
  fake.reset(1);
  Artifact narrow(model, fake);
  Simulation hot(model, 1, /*mostBags=*/2000);
  StepCase step = hot.partStep(0);
  OpenDevice device(narrow);
  hot.fillTables(device, 0);
  setStep(device, 0.5f);
  forward(device, step);
  backward(device, step);
  ASSERT_EQ(nsc_check(device, stream), NSC_OK);
  EXPECT_EQ(launchesOf("nsg_partials"), 1);
  hot.update(step, 0, 0.5f);
  hot.expectTables(device, 0);
}

TEST_F(GraphTest, FiveHundredTablesTakeOneLaunchPerBody) {
  Model model; // of nine dims, which take turns
  ExchangeText exchange;
  exchange.features = 500;
  for (int32_t i = 0; i < 500; ++i) {
    model.tables.push_back({10 + i % 7, 4 + i % 9});
    exchange.lookups.push_back({i, i});
  }
  model.exchanges = {exchange};
  model.placeWhole();
  fake.reset(1);
  Artifact many(model, fake);
  Simulation wide(model, 1);
  StepCase step = wide.partStep(0);
  OpenDevice device(many);
  wide.fillTables(device, 0);
  setStep(device, 0.5f);
  forward(device, step);
  backward(device, step);
  ASSERT_EQ(nsc_check(device, stream), NSC_OK);
  EXPECT_EQ(launchesOf("nsg_lookup"), 1);
  EXPECT_EQ(launchesOf("nsg_sort"), 1);
  EXPECT_EQ(launchesOf("nsg_update"), 9);
  wide.expectResults(step, 0);
  wide.update(step, 0, 0.5f);
  wide.expectTables(device, 0);
}

} // namespace
} // namespace neuroshard::test
