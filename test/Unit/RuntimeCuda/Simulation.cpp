//===- Simulation.cpp - Random models and expected results ----------------===//
//
// Plain loops over whole tables that share no code with the runtime.
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace neuroshard::test {
namespace {

constexpr int64_t lengths[] = {0, 1, 2, 4};

int64_t padded(int64_t dim) { return (dim + 3) / 4 * 4; }

int64_t widthOf(const ShardText &shard) {
  return shard.colEnd - shard.colBegin;
}

} // namespace

std::vector<nsc_part> StepCase::raw() const {
  std::vector<nsc_part> result;
  for (const PartCase &part : parts)
    result.push_back(part.part);
  return result;
}

Simulation::Simulation(Model model, unsigned seed, int64_t mostBags)
    : random(seed), spec(std::move(model)), mostBags(mostBags) {
  for (int32_t d = 0; d < spec.devices; ++d)
    lookups.push_back(spec.lookupsOf(d));
  for (const TableText &table : spec.tables)
    tables.emplace_back(static_cast<size_t>(table.rows * table.dim));
  for (const ShardText &shard : spec.shards)
    states.emplace_back(static_cast<size_t>(shard.rowEnd - shard.rowBegin),
                        1.0f);
}

Model Simulation::randomModel(std::mt19937 &random) {
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  Model model;
  model.devices = static_cast<int32_t>(draw(1, 2));
  model.itemsPerBlock = draw(1, 5);
  for (int64_t count = draw(1, 4); count > 0; --count)
    model.tables.push_back({draw(3, 40), draw(2, 13),
                            draw(0, 3) == 0   ? Rule::RowwiseAdagrad
                            : draw(0, 4) == 0 ? Rule::None
                                              : Rule::Sgd});
  for (int64_t count = draw(1, 2); count > 0; --count) {
    ExchangeText exchange;
    exchange.idBytes = draw(0, 1) ? 8 : 4;
    exchange.features = static_cast<int32_t>(draw(1, 3));
    exchange.weighted = draw(0, 1);
    for (int64_t k = draw(1, 5); k > 0; --k) {
      Bags bags = draw(0, 4) == 0   ? Bags::None
                  : draw(0, 1) == 0 ? Bags::Mean
                                    : Bags::Sum;
      bool weighted =
          exchange.weighted && bags != Bags::None && draw(0, 1) == 0;
      exchange.lookups.push_back(
          {static_cast<int32_t>(
               draw(0, static_cast<int64_t>(model.tables.size()) - 1)),
           static_cast<int32_t>(draw(0, exchange.features - 1)), bags,
           weighted});
    }
    model.exchanges.push_back(exchange);
  }
  for (size_t i = 0; i < model.tables.size(); ++i) {
    const TableText &table = model.tables[i];
    auto device = [&] {
      return static_cast<int32_t>(draw(0, model.devices - 1));
    };
    int64_t row = draw(1, table.rows - 1), column = draw(1, table.dim - 1);
    int32_t index = static_cast<int32_t>(i);
    switch (draw(0, 2)) {
    case 0:
      model.shards.push_back({index, 0, table.rows, 0, table.dim, device()});
      break;
    case 1:
      model.shards.push_back({index, 0, table.rows, 0, column, device()});
      model.shards.push_back(
          {index, 0, table.rows, column, table.dim, device()});
      break;
    case 2:
      model.shards.push_back({index, 0, row, 0, table.dim, device()});
      model.shards.push_back({index, row, table.rows, 0, table.dim, device()});
      break;
    }
  }
  return model;
}

const ShardText &Simulation::shardOf(int32_t device, int32_t slot) const {
  return spec.shards[static_cast<size_t>(
      spec.slotsOf(device)[static_cast<size_t>(slot)])];
}

Simulation::Jagged Simulation::drawBags(int64_t count, int64_t firstId,
                                        int64_t lastId, bool singles) {
  Jagged jagged;
  if (singles || draw(0, 3) == 0)
    jagged.pooling = singles ? 1 : lengths[draw(0, 3)];
  for (int64_t b = 0; b < count; ++b) {
    Bag bag;
    int64_t length = jagged.pooling ? *jagged.pooling : lengths[draw(0, 3)];
    for (int64_t i = 0; i < length; ++i) {
      bag.ids.push_back(draw(firstId, lastId));
      bag.weights.push_back(static_cast<float>(draw(-2, 2)));
    }
    jagged.bags.push_back(std::move(bag));
  }
  return jagged;
}

void Simulation::putBags(StepCase &step, const Jagged &jagged, int32_t idBytes,
                         bool weighted, nsc_part &part) {
  std::vector<int32_t> narrow;
  std::vector<int64_t> wide, offsets = {0};
  std::vector<float> weights;
  for (const Bag &bag : jagged.bags) {
    wide.insert(wide.end(), bag.ids.begin(), bag.ids.end());
    weights.insert(weights.end(), bag.weights.begin(), bag.weights.end());
    offsets.push_back(static_cast<int64_t>(wide.size()));
  }
  narrow.assign(wide.begin(), wide.end());
  step.offsets.emplace_back(offsets);
  step.values.emplace_back(weights);
  part.offsets = jagged.pooling ? nullptr : step.offsets.back().data();
  part.pooling = jagged.pooling.value_or(0);
  part.sample_weights = weighted ? step.values.back().data() : nullptr;
  part.bags = static_cast<int64_t>(jagged.bags.size());
  part.id_end = static_cast<int64_t>(wide.size());
  if (idBytes == 4)
    part.ids = step.narrowIds.emplace_back(narrow).data();
  else
    part.ids = step.wideIds.emplace_back(wide).data();
}

StepCase Simulation::partStep(int32_t device) {
  StepCase step;
  // Column shards of the same rows read the same stream.
  std::map<std::tuple<int32_t, int32_t, int64_t>, std::vector<PartCase>> known;
  const std::vector<Bound> &bounds = lookups[static_cast<size_t>(device)];
  int64_t peers = draw(1, 2);
  for (size_t i = 0; i < bounds.size(); ++i) {
    const Bound &bound = bounds[i];
    const LookupText &lookup = lookupOf(bound);
    const ShardText &shard = shardOf(device, bound.slot);
    std::vector<PartCase> &streams =
        known[{bound.exchange, bound.lookup, shard.rowBegin}];
    if (streams.empty())
      for (int64_t peer = 0; peer < peers; ++peer) {
        PartCase made;
        Jagged jagged = drawBags(
            draw(mostBags > 9 ? mostBags / 2 : 0, mostBags), shard.rowBegin,
            shard.rowEnd - 1, lookup.bags == Bags::None);
        putBags(step, jagged,
                spec.kernelIdBytes(
                    spec.exchanges[static_cast<size_t>(bound.exchange)]),
                lookup.weighted, made.part);
        made.bags = jagged.bags;
        made.part.exact = static_cast<int32_t>(draw(0, 1));
        made.part.feature = lookup.feature;
        streams.push_back(std::move(made));
      }
    for (const PartCase &stream : streams) {
      step.parts.push_back(stream);
      step.parts.back().part.lookup = static_cast<int32_t>(i);
    }
  }
  addResults(step, device);
  drawGradients(step, device);
  return step;
}

StepCase Simulation::wholeStep(int32_t device) {
  StepCase step;
  std::vector<std::vector<Jagged>> features;
  int64_t batch = draw(0, 7);
  for (size_t x = 0; x < spec.exchanges.size(); ++x) {
    const ExchangeText &exchange = spec.exchanges[x];
    std::optional<int64_t> fixed;
    if (draw(0, 2) == 0)
      fixed = draw(0, 2);
    Jagged all;
    std::vector<int64_t> begins = {0};
    features.emplace_back();
    for (int32_t f = 0; f < exchange.features; ++f) {
      int64_t rows = 1 << 20;
      for (const LookupText &lookup : exchange.lookups)
        if (lookup.feature == f)
          rows = std::min(rows,
                          spec.tables[static_cast<size_t>(lookup.table)].rows);
      Jagged jagged = drawBags(batch, 0, rows - 1, false);
      for (Bag &bag : jagged.bags)
        if (fixed) {
          bag.ids.resize(static_cast<size_t>(*fixed), rows - 1);
          bag.weights.resize(static_cast<size_t>(*fixed), 1.0f);
        }
      all.bags.insert(all.bags.end(), jagged.bags.begin(), jagged.bags.end());
      int64_t ids = 0;
      for (const Bag &bag : jagged.bags)
        ids += static_cast<int64_t>(bag.ids.size());
      begins.push_back(begins.back() + ids);
      features.back().push_back(std::move(jagged));
    }
    nsc_part arrays = {};
    putBags(step, all, spec.kernelIdBytes(exchange), true, arrays);
    step.featureBegins.push_back(begins);
    nsc_input input = {};
    input.ids = arrays.ids;
    input.offsets = fixed ? nullptr : arrays.offsets;
    input.sample_weights = arrays.sample_weights;
    input.num_ids = arrays.id_end;
    input.batch = batch;
    input.pooling = fixed.value_or(0);
    bool unpooled = false;
    for (const LookupText &lookup : exchange.lookups)
      unpooled |= lookup.bags == Bags::None;
    if (unpooled || draw(0, 1))
      input.feature_begin = step.featureBegins.back().data();
    step.inputs.push_back(input);
  }
  for (const Bound &bound : lookups[static_cast<size_t>(device)]) {
    PartCase made;
    made.part.lookup = static_cast<int32_t>(step.parts.size());
    made.bags = features[static_cast<size_t>(bound.exchange)]
                        [static_cast<size_t>(lookupOf(bound).feature)]
                            .bags;
    if (lookupOf(bound).bags == Bags::None) {
      std::vector<Bag> singles;
      for (const Bag &bag : made.bags)
        for (int64_t id : bag.ids)
          singles.push_back({{id}, {1.0f}});
      made.bags = singles;
    }
    step.parts.push_back(std::move(made));
  }
  addResults(step, device);
  drawGradients(step, device);
  return step;
}

void Simulation::addResults(StepCase &step, int32_t device) {
  for (PartCase &part : step.parts) {
    int64_t dim = widthOf(shardOf(device, boundOf(part, device).slot));
    int64_t stride = padded(dim) + 4 * draw(0, 2);
    size_t size = part.bags.size() * static_cast<size_t>(stride);
    step.values.push_back(DeviceArray<float>(std::vector<float>(size, 777.0f)));
    part.part.out = step.values.back().data();
    part.part.out_stride = stride;
    step.outputs.push_back({part.part.out, stride});
  }
}

void Simulation::drawGradients(StepCase &step, int32_t device) {
  step.gradients.clear();
  for (const PartCase &part : step.parts) {
    int64_t dim = widthOf(shardOf(device, boundOf(part, device).slot));
    int64_t stride = padded(dim) + 4 * draw(0, 2);
    std::vector<float> values(part.bags.size() * static_cast<size_t>(stride));
    for (float &value : values)
      value = static_cast<float>(draw(-3, 3));
    step.values.push_back(DeviceArray<float>(values));
    step.gradients.push_back({step.values.back().data(), stride, nullptr});
    const Bound &bound = boundOf(part, device);
    if (!lookupOf(bound).weighted || draw(0, 1))
      continue;
    step.values.push_back(DeviceArray<float>(
        std::vector<float>(static_cast<size_t>(part.part.id_end), 777.0f)));
    step.gradients.back().weight_gradient = step.values.back().data();
  }
}

void Simulation::redrawIds(PartCase &part, int32_t device) {
  const Bound &bound = boundOf(part, device);
  const ShardText &shard = shardOf(device, bound.slot);
  bool narrow = spec.kernelIdBytes(
                    spec.exchanges[static_cast<size_t>(bound.exchange)]) == 4;
  auto *ids = const_cast<void *>(part.part.ids);
  int64_t position = 0;
  for (Bag &bag : part.bags)
    for (int64_t &id : bag.ids) {
      id = draw(shard.rowBegin, shard.rowEnd - 1);
      if (narrow)
        static_cast<int32_t *>(ids)[position++] = static_cast<int32_t>(id);
      else
        static_cast<int64_t *>(ids)[position++] = id;
    }
}

void Simulation::redraw(StepCase &step, int32_t device) {
  std::map<const void *, const PartCase *> drawn; // column shards share ids
  for (size_t i = 0; i < step.parts.size(); ++i) {
    PartCase &part = step.parts[i];
    auto [first, isNew] = drawn.try_emplace(part.part.ids, &part);
    if (isNew)
      redrawIds(part, device);
    else
      part.bags = first->second->bags;
    const nsc_gradient &gradient = step.gradients[i];
    std::generate_n(const_cast<float *>(gradient.gradient),
                    static_cast<int64_t>(part.bags.size()) * gradient.stride,
                    [&] { return static_cast<float>(draw(-3, 3)); });
  }
}

void Simulation::fillTables(nsc_device *handle, int32_t device) {
  for (std::vector<float> &table : tables)
    if (table[0] == 0)
      for (float &value : table)
        value = static_cast<float>(draw(1, 9));
  std::vector<int32_t> slots = spec.slotsOf(device);
  for (size_t s = 0; s < slots.size(); ++s) {
    const ShardText &shard = spec.shards[static_cast<size_t>(slots[s])];
    int64_t dim = spec.tables[static_cast<size_t>(shard.table)].dim;
    std::vector<float> values;
    for (int64_t r = shard.rowBegin; r < shard.rowEnd; ++r)
      for (int64_t c = shard.colBegin; c < shard.colEnd; ++c)
        values.push_back(tables[static_cast<size_t>(shard.table)]
                               [static_cast<size_t>(r * dim + c)]);
    EXPECT_EQ(nsc_write_weights(handle, static_cast<int32_t>(s), 0,
                                shard.rowEnd - shard.rowBegin, values.data()),
              NSC_OK);
  }
}

void Simulation::expectResults(const StepCase &step, int32_t device) const {
  for (size_t i = 0; i < step.parts.size(); ++i) {
    const PartCase &part = step.parts[i];
    const Bound &bound = boundOf(part, device);
    const LookupText &lookup = lookupOf(bound);
    const ShardText &shard = shardOf(device, bound.slot);
    int64_t dim = spec.tables[static_cast<size_t>(shard.table)].dim;
    const std::vector<float> &table = tables[static_cast<size_t>(shard.table)];
    const auto *out = static_cast<const float *>(part.part.out);
    for (size_t b = 0; b < part.bags.size(); ++b)
      for (int64_t c = 0; c < part.part.out_stride; ++c) {
        float expected = 777.0f; // nothing is written past a row
        if (c < widthOf(shard)) {
          const Bag &bag = part.bags[b];
          expected = 0;
          for (size_t j = 0; j < bag.ids.size(); ++j)
            expected += (lookup.weighted ? bag.weights[j] : 1.0f) *
                        table[static_cast<size_t>(bag.ids[j] * dim +
                                                  shard.colBegin + c)];
          if (divides(bound, shard) && !bag.ids.empty())
            expected /= static_cast<float>(bag.ids.size());
        }
        ASSERT_EQ(out[static_cast<int64_t>(b) * part.part.out_stride + c],
                  expected)
            << "part " << i << " item " << b << " column " << c;
      }
  }
}

void Simulation::expectWeightGradients(const StepCase &step,
                                       int32_t device) const {
  for (size_t i = 0; i < step.parts.size(); ++i) {
    const nsc_gradient &gradient = step.gradients[i];
    if (!gradient.weight_gradient)
      continue;
    const Bound &bound = boundOf(step.parts[i], device);
    const ShardText &shard = shardOf(device, bound.slot);
    int64_t dim = spec.tables[static_cast<size_t>(shard.table)].dim;
    const std::vector<float> &table = tables[static_cast<size_t>(shard.table)];
    int64_t position = step.parts[i].part.id_begin;
    for (size_t b = 0; b < step.parts[i].bags.size(); ++b) {
      const Bag &bag = step.parts[i].bags[b];
      for (int64_t id : bag.ids) {
        const float *row =
            &table[static_cast<size_t>(id * dim + shard.colBegin)];
        const float *values =
            gradient.gradient + static_cast<int64_t>(b) * gradient.stride;
        float expected =
            std::inner_product(row, row + widthOf(shard), values, 0.0f);
        if (divides(bound, shard))
          expected /= static_cast<float>(bag.ids.size());
        ASSERT_EQ(gradient.weight_gradient[position++], expected)
            << "part " << i << " position " << position - 1;
      }
    }
  }
}

void Simulation::update(const StepCase &step, int32_t device,
                        float learningRate) {
  std::vector<int32_t> slots = spec.slotsOf(device);
  for (size_t s = 0; s < slots.size(); ++s) {
    const ShardText &shard = spec.shards[static_cast<size_t>(slots[s])];
    const TableText &spec_ = spec.tables[static_cast<size_t>(shard.table)];
    bool twoPhase =
        spec_.rule == Rule::RowwiseAdagrad && spec.splitsColumns(shard.table);
    if (spec_.rule != Rule::Sgd && !twoPhase)
      continue;
    std::map<int64_t, std::vector<float>> sums;
    for (size_t i = 0; i < step.parts.size(); ++i) {
      const PartCase &part = step.parts[i];
      const Bound &bound = boundOf(part, device);
      if (bound.slot != static_cast<int32_t>(s))
        continue;
      for (size_t b = 0; b < part.bags.size(); ++b)
        for (size_t j = 0; j < part.bags[b].ids.size(); ++j) {
          const Bag &bag = part.bags[b];
          float factor = lookupOf(bound).weighted ? bag.weights[j] : 1.0f;
          if (divides(bound, shard))
            factor /= static_cast<float>(bag.ids.size());
          std::vector<float> &sum = sums[bag.ids[j]];
          sum.resize(static_cast<size_t>(widthOf(shard)));
          for (size_t c = 0; c < sum.size(); ++c)
            sum[c] += factor *
                      step.gradients[i].gradient[static_cast<int64_t>(b) *
                                                     step.gradients[i].stride +
                                                 static_cast<int64_t>(c)];
        }
    }
    for (const auto &[row, sum] : sums) {
      float scale = learningRate;
      if (twoPhase) {
        float norm = 0;
        for (float value : sum)
          norm += value * value;
        float &state = states[static_cast<size_t>(slots[s])]
                             [static_cast<size_t>(row - shard.rowBegin)];
        state += norm / static_cast<float>(spec_.dim);
        scale = learningRate / std::sqrt(state);
      }
      for (size_t c = 0; c < sum.size(); ++c)
        tables[static_cast<size_t>(shard.table)]
              [static_cast<size_t>(row * spec_.dim + shard.colBegin) + c] -=
            scale * sum[c];
    }
  }
}

void Simulation::expectTables(nsc_device *handle, int32_t device) const {
  std::vector<int32_t> slots = spec.slotsOf(device);
  for (size_t s = 0; s < slots.size(); ++s) {
    const ShardText &shard = spec.shards[static_cast<size_t>(slots[s])];
    int64_t dim = spec.tables[static_cast<size_t>(shard.table)].dim;
    int64_t rows = shard.rowEnd - shard.rowBegin;
    std::vector<float> values(static_cast<size_t>(rows * widthOf(shard)));
    ASSERT_EQ(nsc_read_weights(handle, static_cast<int32_t>(s), 0, rows,
                               values.data()),
              NSC_OK)
        << nsc_last_error(handle);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < widthOf(shard); ++c)
        ASSERT_EQ(values[static_cast<size_t>(r * widthOf(shard) + c)],
                  tables[static_cast<size_t>(shard.table)][static_cast<size_t>(
                      (shard.rowBegin + r) * dim + shard.colBegin + c)])
            << "slot " << s << " row " << r << " column " << c;
  }
}

} // namespace neuroshard::test
