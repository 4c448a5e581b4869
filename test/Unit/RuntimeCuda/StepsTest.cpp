//===- StepsTest.cpp - Whole steps against plain loops --------------------===//
//
// Random models, shards and batches through the C interface, on a driver that
// runs work as late and in as random an order as streams and events allow.
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"

namespace neuroshard::test {
namespace {

class StepsTest : public FakeTest {
protected:
  bool ok(nsc_status status, nsc_device *device) {
    EXPECT_EQ(status, NSC_OK) << nsc_last_error(device);
    return status == NSC_OK;
  }

  void makeParts(nsc_device *device, StepCase &step) {
    std::vector<nsc_part> parts(step.parts.size());
    ASSERT_EQ(nsc_make_parts(
                  device, step.inputs.data(),
                  static_cast<int32_t>(step.inputs.size()), step.outputs.data(),
                  static_cast<int32_t>(step.outputs.size()), parts.data()),
              NSC_OK)
        << nsc_last_error(device);
    for (size_t i = 0; i < parts.size(); ++i)
      step.parts[i].part = parts[i];
  }

  void train(nsc_device *device, const StepCase &step, int32_t how) {
    std::vector<nsc_part> parts = step.raw();
    ok(nsc_set_step(device, 0.5f, 1, stream), device);
    ok(nsc_forward(device, parts.data(), static_cast<int32_t>(parts.size()),
                   how, stream),
       device);
    ok(nsc_backward(device, step.gradients.data(),
                    static_cast<int32_t>(step.gradients.size()), stream),
       device);
    ok(nsc_backward_apply(device, stream), device);
  }

  bool trains(const Model &model, int32_t device) {
    for (const Bound &bound : model.lookupsOf(device)) {
      const LookupText &lookup =
          model.exchanges[static_cast<size_t>(bound.exchange)]
              .lookups[static_cast<size_t>(bound.lookup)];
      Rule rule = model.tables[static_cast<size_t>(lookup.table)].rule;
      if (rule == Rule::Sgd || lookup.weighted)
        return true;
    }
    for (int32_t shard : model.slotsOf(device)) {
      int32_t table = model.shards[static_cast<size_t>(shard)].table;
      Rule rule = model.tables[static_cast<size_t>(table)].rule;
      if (rule == Rule::Sgd ||
          (rule == Rule::RowwiseAdagrad && model.splitsColumns(table)))
        return true;
    }
    return model.slotsOf(device).empty();
  }
};

TEST_F(StepsTest, RandomPartsGiveTheResultsAndUpdatesOfPlainLoops) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    fake.reset(seed);
    std::mt19937 random(seed);
    Simulation simulation(Simulation::randomModel(random), seed);
    Artifact artifact(simulation.model(), fake);
    for (int32_t d = 0; d < simulation.model().devices; ++d) {
      std::vector<StepCase> steps;
      OpenDevice device(artifact, d);
      simulation.fillTables(device, d);
      for (int i = 0; i < 3; ++i) {
        const StepCase &step = steps.emplace_back(simulation.partStep(d));
        if (trains(simulation.model(), d)) {
          train(device, step, i == 0 ? NSC_TRAINING_JOINED : NSC_TRAINING);
        } else {
          std::vector<nsc_part> parts = step.raw();
          ok(nsc_forward(device, parts.data(),
                         static_cast<int32_t>(parts.size()), NSC_INFERENCE,
                         stream),
             device);
        }
        ok(nsc_check(device, stream), device);
        simulation.expectResults(step, d);
        if (trains(simulation.model(), d))
          simulation.expectWeightGradients(step, d);
        simulation.update(step, d, 0.5f);
        simulation.expectTables(device, d);
        if (HasFatalFailure())
          return;
      }
    }
  }
}

TEST_F(StepsTest, StepsThatNobodyWaitsForDoNotMix) {
  // Ten steps of changing sizes are queued before any of them runs.
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    fake.reset(seed);
    std::mt19937 random(seed);
    Simulation simulation(Simulation::randomModel(random), seed);
    if (!trains(simulation.model(), 0))
      continue;
    Artifact artifact(simulation.model(), fake);
    std::vector<StepCase> steps;
    OpenDevice device(artifact);
    simulation.fillTables(device, 0);
    for (int i = 0; i < 10; ++i)
      steps.push_back(simulation.partStep(0));
    for (const StepCase &step : steps) {
      std::vector<nsc_part> parts = step.raw();
      // Some forwards are never followed by their update.
      if (random() % 3 == 0)
        ok(nsc_forward(device, parts.data(), static_cast<int32_t>(parts.size()),
                       NSC_TRAINING, stream),
           device);
      train(device, step, NSC_TRAINING);
    }
    ok(nsc_check(device, stream), device);
    for (const StepCase &step : steps)
      simulation.update(step, 0, 0.5f);
    simulation.expectTables(device, 0);
    if (HasFatalFailure())
      return;
  }
}

TEST_F(StepsTest, ForwardsWithoutUpdatesDoNotDisturbTheNext) {
  // More of them than there are plans, so that plans are used again.
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    fake.reset(seed);
    std::mt19937 random(seed);
    Simulation simulation(Simulation::randomModel(random), seed);
    if (!trains(simulation.model(), 0))
      continue;
    Artifact artifact(simulation.model(), fake);
    std::vector<StepCase> steps;
    OpenDevice device(artifact);
    simulation.fillTables(device, 0);
    for (int i = 0; i < 20; ++i)
      steps.push_back(simulation.partStep(0));
    for (const StepCase &step : steps) {
      std::vector<nsc_part> parts = step.raw();
      ok(nsc_forward(device, parts.data(), static_cast<int32_t>(parts.size()),
                     NSC_TRAINING, stream),
         device);
    }
    train(device, steps.back(), NSC_TRAINING);
    ok(nsc_check(device, stream), device);
    for (const StepCase &step : steps)
      if (&step != &steps.back())
        simulation.expectResults(step, 0);
    simulation.update(steps.back(), 0, 0.5f);
    simulation.expectTables(device, 0);
    if (HasFatalFailure())
      return;
  }
}

TEST_F(StepsTest, WholeInputsBecomeParts) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    fake.reset(seed);
    std::mt19937 random(seed);
    Model model = Simulation::randomModel(random);
    std::erase_if(model.shards, [&](const ShardText &shard) {
      return shard.rowBegin > 0; // whole rows
    });
    for (ShardText &shard : model.shards)
      shard.rowEnd = model.tables[static_cast<size_t>(shard.table)].rows;
    Simulation simulation(model, seed);
    Artifact artifact(model, fake);
    for (int32_t d = 0; d < model.devices; ++d) {
      std::vector<StepCase> steps;
      OpenDevice device(artifact, d);
      simulation.fillTables(device, d);
      for (int i = 0; i < 2; ++i) {
        StepCase &step = steps.emplace_back(simulation.wholeStep(d));
        makeParts(device, step);
        if (HasFatalFailure())
          return;
        std::vector<nsc_part> parts = step.raw();
        if (trains(model, d))
          train(device, step, NSC_TRAINING);
        else
          ok(nsc_forward(device, parts.data(),
                         static_cast<int32_t>(parts.size()), NSC_INFERENCE,
                         stream),
             device);
        ok(nsc_check(device, stream), device);
        simulation.expectResults(step, d);
        simulation.update(step, d, 0.5f);
        simulation.expectTables(device, d);
        if (HasFatalFailure())
          return;
      }
    }
  }
}

} // namespace
} // namespace neuroshard::test
