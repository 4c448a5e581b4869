//===- StepsTest.cpp - Whole steps against plain loops --------------------===//
//
// Random models, shards and batches through the C interface, on a driver that
// runs work as late and in as random an order as streams and events allow.
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"

#include <functional>

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

  void forward(nsc_device *device, const StepCase &step, int32_t how) {
    std::vector<nsc_part> parts = step.raw();
    ok(nsc_forward(device, parts.data(), static_cast<int32_t>(parts.size()),
                   how, stream),
       device);
  }

  void train(nsc_device *device, const StepCase &step, int32_t how) {
    ok(nsc_set_step(device, 0.5f, 1, stream), device);
    forward(device, step, how);
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

  /// Runs a test on random models, up to its first fatal failure.
  void forSeeds(
      unsigned seeds,
      const std::function<void(Simulation &, std::mt19937 &)> &test,
      const std::function<void(Model &)> &change = [](Model &) {}) {
    for (unsigned seed = 0; seed < seeds && !HasFatalFailure(); ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      fake.reset(seed);
      std::mt19937 random(seed);
      Model model = Simulation::randomModel(random);
      change(model);
      Simulation simulation(model, seed);
      test(simulation, random);
    }
  }
};

TEST_F(StepsTest, RandomPartsGiveTheResultsAndUpdatesOfPlainLoops) {
  forSeeds(150, [&](Simulation &simulation, std::mt19937 &) {
    Artifact artifact(simulation.model(), fake);
    for (int32_t d = 0; d < simulation.model().devices; ++d) {
      bool training = trains(simulation.model(), d);
      std::vector<StepCase> steps;
      OpenDevice device(artifact, d);
      simulation.fillTables(device, d);
      for (int i = 0; i < 3; ++i) {
        const StepCase &step = steps.emplace_back(simulation.partStep(d));
        if (training)
          train(device, step, i == 0 ? NSC_TRAINING_JOINED : NSC_TRAINING);
        else
          forward(device, step, NSC_INFERENCE);
        ok(nsc_check(device, stream), device);
        simulation.expectResults(step, d);
        if (training)
          simulation.expectWeightGradients(step, d);
        simulation.update(step, d, 0.5f);
        simulation.expectTables(device, d);
        if (HasFatalFailure())
          return;
      }
    }
  });
}

TEST_F(StepsTest, StepsThatNobodyWaitsForDoNotMix) {
  // Ten steps of changing sizes are queued before any of them runs.
  forSeeds(60, [&](Simulation &simulation, std::mt19937 &random) {
    if (!trains(simulation.model(), 0))
      return;
    Artifact artifact(simulation.model(), fake);
    std::vector<StepCase> steps;
    OpenDevice device(artifact);
    simulation.fillTables(device, 0);
    for (int i = 0; i < 10; ++i)
      steps.push_back(simulation.partStep(0));
    for (const StepCase &step : steps) {
      // Some forwards are never followed by their update.
      if (random() % 3 == 0)
        forward(device, step, NSC_TRAINING);
      train(device, step, NSC_TRAINING);
    }
    ok(nsc_check(device, stream), device);
    for (const StepCase &step : steps)
      simulation.update(step, 0, 0.5f);
    simulation.expectTables(device, 0);
  });
}

TEST_F(StepsTest, ForwardsWithoutUpdatesDoNotDisturbTheNext) {
  // More of them than there are plans, so that plans are used again.
  forSeeds(40, [&](Simulation &simulation, std::mt19937 &) {
    if (!trains(simulation.model(), 0))
      return;
    Artifact artifact(simulation.model(), fake);
    std::vector<StepCase> steps;
    OpenDevice device(artifact);
    simulation.fillTables(device, 0);
    for (int i = 0; i < 20; ++i)
      steps.push_back(simulation.partStep(0));
    for (const StepCase &step : steps)
      forward(device, step, NSC_TRAINING);
    train(device, steps.back(), NSC_TRAINING);
    ok(nsc_check(device, stream), device);
    for (const StepCase &step : steps)
      if (&step != &steps.back())
        simulation.expectResults(step, 0);
    simulation.update(steps.back(), 0, 0.5f);
    simulation.expectTables(device, 0);
  });
}

/// Cuts no table by rows.
void joinRows(Model &model) {
  std::erase_if(model.shards,
                [](const ShardText &shard) { return shard.rowBegin > 0; });
  for (ShardText &shard : model.shards)
    shard.rowEnd = model.tables[static_cast<size_t>(shard.table)].rows;
}

TEST_F(StepsTest, WholeInputsBecomeParts) {
  auto test = [&](Simulation &simulation, std::mt19937 &) {
    const Model &model = simulation.model();
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
        if (trains(model, d))
          train(device, step, NSC_TRAINING);
        else
          forward(device, step, NSC_INFERENCE);
        ok(nsc_check(device, stream), device);
        simulation.expectResults(step, d);
        simulation.update(step, d, 0.5f);
        simulation.expectTables(device, d);
        if (HasFatalFailure())
          return;
      }
    }
  };
  forSeeds(150, test, joinRows);
}

} // namespace
} // namespace neuroshard::test
