//===- Simulation.h - Random models and expected results -------*- C++ -*-===//
//
// Draws models, shards and batches, and computes the expected results and
// tables by plain loops over whole tables. Values are small integers and bags
// have 0, 1, 2 or 4 ids, so that all sums are exact.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIMECUDA_SIMULATION_H
#define NEUROSHARD_TEST_RUNTIMECUDA_SIMULATION_H

#include "FakeTest.h"

#include <optional>
#include <random>

namespace neuroshard::test {

/// Ids of one bag and their sample weights.
struct Bag {
  std::vector<int64_t> ids;
  std::vector<float> weights;
};

/// One part of a step: its arguments, and the bags behind them.
struct PartCase {
  nsc_part part = {};
  std::vector<Bag> bags; ///< one per item.
};

/// One random step on one device, with all memory it needs.
struct StepCase {
  std::vector<PartCase> parts;
  std::vector<nsc_gradient> gradients;
  std::vector<nsc_part> raw() const;

  // Whole inputs, if the step was made of them.
  std::vector<nsc_input> inputs;
  std::vector<nsc_output> outputs;

  std::vector<DeviceArray<int32_t>> narrowIds;
  std::vector<DeviceArray<int64_t>> wideIds;
  std::vector<DeviceArray<int64_t>> offsets;
  std::vector<DeviceArray<float>> values;
  std::vector<std::vector<int64_t>> featureBegins;
};

class Simulation {
public:
  /// Parts have at most `mostBags` bags.
  Simulation(Model model, unsigned seed, int64_t mostBags = 9);

  static Model randomModel(std::mt19937 &random);

  /// Whole inputs for nsc_make_parts. All shards must have all rows.
  StepCase wholeStep(int32_t device);
  /// Parts of one or two peers per lookup.
  StepCase partStep(int32_t device);

  /// Sets random weights in the simulation and on the device.
  void fillTables(nsc_device *handle, int32_t device);

  void expectResults(const StepCase &step, int32_t device) const;
  /// Gradients of sample weights, by the tables before the update.
  void expectWeightGradients(const StepCase &step, int32_t device) const;
  /// Applies the expected update for `gradients` of the step.
  void update(const StepCase &step, int32_t device, float learningRate);
  void expectTables(nsc_device *handle, int32_t device) const;

  /// Other values in the ids and gradients of a step, of the same shapes.
  void redraw(StepCase &step, int32_t device);

  const Model &model() const { return spec; }
  std::mt19937 random;

private:
  struct Jagged {
    std::vector<Bag> bags;
    std::optional<int64_t> pooling; ///< all bags have so many.
  };

  int64_t draw(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }
  Jagged drawBags(int64_t count, int64_t firstId, int64_t lastId, bool singles);
  /// Writes bags as arrays into a part: ids, offsets, weights.
  void putBags(StepCase &step, const Jagged &jagged, int32_t idBytes,
               bool weighted, nsc_part &part);
  void redrawIds(PartCase &part, int32_t device);
  void addResults(StepCase &step, int32_t device);
  void drawGradients(StepCase &step, int32_t device);
  const ShardText &shardOf(int32_t device, int32_t slot) const;
  const Bound &boundOf(const PartCase &part, int32_t device) const {
    return lookups[static_cast<size_t>(device)]
                  [static_cast<size_t>(part.part.lookup)];
  }
  /// Sums of some of a table's rows are divided elsewhere.
  bool divides(const Bound &bound, const ShardText &shard) const {
    return lookupOf(bound).bags == Bags::Mean &&
           shard.rowEnd - shard.rowBegin ==
               spec.tables[static_cast<size_t>(shard.table)].rows;
  }
  const LookupText &lookupOf(const Bound &bound) const {
    return spec.exchanges[static_cast<size_t>(bound.exchange)]
        .lookups[static_cast<size_t>(bound.lookup)];
  }

  Model spec;
  int64_t mostBags;
  std::vector<std::vector<Bound>> lookups; ///< per device.
  std::vector<std::vector<float>> tables;  ///< rows x dim.
  std::vector<std::vector<float>> states;  ///< per shard, by row.
};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIMECUDA_SIMULATION_H
