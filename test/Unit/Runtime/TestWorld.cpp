//===- TestWorld.cpp - Worlds made of scalar kernels ----------------------===//
//
// The host functions call the nsrt_* functions of one step in order, as
// compiled ones do.
//
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

using nlohmann::json;

namespace neuroshard::test {

namespace {

/// The local part of the batch, an argument of host functions.
struct LocalExchange {
  int64_t batch = 0;
  std::vector<std::byte> ids;
  std::vector<int64_t> offsets;
  std::vector<float> weights;
  std::vector<std::vector<std::byte>> results;
  std::vector<std::vector<std::byte>> gradients;
  std::vector<float> weightGradient;
  int64_t numIds = 0;
};

struct LocalStep {
  const Model *model;
  std::vector<LocalExchange> exchanges;
  float learningRate = 0;
  int64_t step = 0;
};

int64_t bytesOf(Element type) { return type == Element::F32 ? 4 : 2; }

nsrt_routed *routeLocal(nsrt_device *device, LocalStep &step, size_t x) {
  LocalExchange &local = step.exchanges[x];
  return nsrt_route(device, static_cast<int64_t>(x), local.ids.data(),
                    local.numIds, local.offsets.data(),
                    static_cast<int64_t>(local.offsets.size()),
                    local.weights.empty() ? nullptr : local.weights.data());
}

constexpr std::byte kUnwritten{0x5a};

/// Rows without what lies between them, which is as it was or, if the step has
/// failed, cleared.
std::vector<std::byte> closeUp(const std::vector<std::byte> &rows, int64_t dim,
                               int64_t stride, int64_t elementBytes) {
  std::vector<std::byte> close;
  for (size_t i = 0; i < rows.size(); ++i)
    if (static_cast<int64_t>(i) / elementBytes % stride < dim)
      close.push_back(rows[i]);
    else
      EXPECT_TRUE(rows[i] == kUnwritten || rows[i] == std::byte{0}) << i;
  return close;
}

nsrt_partials *lookUpLocal(nsrt_device *device, LocalStep &step, size_t x,
                           nsrt_routed *routed) {
  nsrt_partials *partials = nsrt_lookup(device, routed);
  nsrt_results_start(device, routed, partials);
  const Exchange &exchange = step.model->exchanges[x];
  // Rows are 0 to 2 elements apart.
  std::vector<std::vector<std::byte>> apart;
  std::vector<int32_t> types;
  std::vector<void *> outs;
  std::vector<int64_t> strides;
  for (size_t k = 0; k < exchange.lookups.size(); ++k) {
    const Lookup &lookup = exchange.lookups[k];
    types.push_back(static_cast<int32_t>(lookup.result));
    strides.push_back(
        step.model->tables[static_cast<size_t>(lookup.table)].dim +
        static_cast<int64_t>(k % 3));
    int64_t rows = nsrt_result_rows(device, routed, static_cast<int64_t>(k));
    // Not zero, so that a failed step must zero it.
    outs.push_back(
        apart
            .emplace_back(
                static_cast<size_t>(rows * strides[k] * bytesOf(lookup.result)),
                kUnwritten)
            .data());
  }
  nsrt_results_wait(device, routed, partials,
                    static_cast<int64_t>(types.size()), types.data(),
                    outs.data(), strides.data());
  for (size_t k = 0; k < exchange.lookups.size(); ++k)
    step.exchanges[x].results[k] =
        closeUp(apart[k], strides[k] - static_cast<int64_t>(k % 3), strides[k],
                bytesOf(exchange.lookups[k].result));
  return partials;
}

void hostForward(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto &step = *static_cast<LocalStep *>(args[1]);
  for (size_t x = 0; x < step.exchanges.size(); ++x) {
    nsrt_routed *routed = routeLocal(device, step, x);
    nsrt_partials *partials = lookUpLocal(device, step, x, routed);
    nsrt_partials_release(device, partials);
    nsrt_routed_release(device, routed);
  }
}

nsrt_partials *packGradients(nsrt_device *device, LocalStep &step, size_t x,
                             nsrt_routed *routed) {
  std::vector<int32_t> types;
  std::vector<const void *> values;
  std::vector<int64_t> strides;
  const auto &lookups = step.model->exchanges[x].lookups;
  for (size_t k = 0; k < lookups.size(); ++k) {
    types.push_back(static_cast<int32_t>(lookups[k].result));
    values.push_back(step.exchanges[x].gradients[k].data());
    strides.push_back(
        step.model->tables[static_cast<size_t>(lookups[k].table)].dim);
  }
  return nsrt_gradients_pack(device, routed, static_cast<int64_t>(types.size()),
                             types.data(), values.data(), strides.data(), 1);
}

void hostTrain(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto &step = *static_cast<LocalStep *>(args[1]);
  std::vector<nsrt_routed *> routed;
  std::vector<nsrt_partials *> gradients;
  for (size_t x = 0; x < step.exchanges.size(); ++x) {
    routed.push_back(routeLocal(device, step, x));
    nsrt_partials_release(device, lookUpLocal(device, step, x, routed[x]));
  }
  for (size_t x = 0; x < step.exchanges.size(); ++x) {
    LocalExchange &local = step.exchanges[x];
    gradients.push_back(packGradients(device, step, x, routed[x]));
    nsrt_gradients_start(device, routed[x], gradients[x]);
    if (!step.model->exchanges[x].weighted)
      continue;
    local.weightGradient.assign(static_cast<size_t>(local.numIds), -77.0f);
    nsrt_weights_gradient(device, routed[x], gradients[x],
                          local.weightGradient.data());
  }
  nsrt_update(device, static_cast<int64_t>(routed.size()), routed.data(),
              gradients.data(), step.learningRate, step.step);
  for (nsrt_partials *partials : gradients)
    nsrt_partials_release(device, partials);
  for (nsrt_routed *handle : routed)
    nsrt_routed_release(device, handle);
}

/// The bags [begin, end) of the global batch that a rank has.
std::pair<int64_t, int64_t> bagsOfRank(int64_t batch, int devices, int rank) {
  int64_t base = batch / devices, extra = batch % devices;
  int64_t begin = base * rank + std::min<int64_t>(rank, extra);
  return {begin, begin + base + (rank < extra)};
}

/// Rows of a lookup's global result before bag `bag`.
int64_t rowsBefore(const Lookup &lookup, const Batch &batch, int64_t bag) {
  if (lookup.pooling != Pool::None)
    return bag;
  int64_t rows = 0;
  for (int64_t b = 0; b < bag; ++b)
    rows += static_cast<int64_t>(
        batch.ids[static_cast<size_t>(lookup.feature)][static_cast<size_t>(b)]
            .size());
  return rows;
}

void appendIds(LocalExchange &local, const std::vector<int64_t> &ids,
               int idBytes) {
  for (int64_t id : ids) {
    int32_t narrow = static_cast<int32_t>(id);
    auto *from = reinterpret_cast<const std::byte *>(&id);
    if (idBytes == 4)
      from = reinterpret_cast<const std::byte *>(&narrow);
    local.ids.insert(local.ids.end(), from, from + idBytes);
  }
  local.numIds += static_cast<int64_t>(ids.size());
  local.offsets.push_back(local.numIds);
}

LocalExchange makeLocal(const Exchange &exchange, const Batch &batch,
                        std::pair<int64_t, int64_t> bags) {
  LocalExchange local;
  local.batch = bags.second - bags.first;
  local.offsets.push_back(0);
  for (int f = 0; f < exchange.numFeatures; ++f)
    for (int64_t b = bags.first; b < bags.second; ++b) {
      appendIds(local,
                batch.ids[static_cast<size_t>(f)][static_cast<size_t>(b)],
                exchange.idBytes);
      if (exchange.weighted) {
        const auto &weights =
            batch.weights[static_cast<size_t>(f)][static_cast<size_t>(b)];
        local.weights.insert(local.weights.end(), weights.begin(),
                             weights.end());
      }
    }
  local.results.resize(exchange.lookups.size());
  return local;
}

std::vector<std::byte> sliceGradient(const Lookup &lookup, const Batch &batch,
                                     std::pair<int64_t, int64_t> bags,
                                     int64_t dim,
                                     const std::vector<float> &gradient) {
  int64_t begin = rowsBefore(lookup, batch, bags.first) * dim;
  int64_t end = rowsBefore(lookup, batch, bags.second) * dim;
  std::vector<std::byte> slice(
      static_cast<size_t>((end - begin) * bytesOf(lookup.result)));
  for (int64_t i = begin; i < end; ++i)
    storeElement(lookup.result, slice.data(), i - begin,
                 gradient[static_cast<size_t>(i)]);
  return slice;
}

/// Appends a rank's results to the global ones.
void collect(const Model &model, const LocalStep &step,
             const std::vector<Batch> &batches, int devices, int rank,
             StepResult &result) {
  for (size_t x = 0; x < step.exchanges.size(); ++x) {
    const Exchange &exchange = model.exchanges[x];
    const LocalExchange &local = step.exchanges[x];
    for (size_t k = 0; k < exchange.lookups.size(); ++k) {
      Element type = exchange.lookups[k].result;
      int64_t count =
          static_cast<int64_t>(local.results[k].size()) / bytesOf(type);
      for (int64_t i = 0; i < count; ++i)
        result.results[x][k].push_back(
            loadElement(type, local.results[k].data(), i));
    }
    if (local.weightGradient.empty())
      continue;
    auto bags = bagsOfRank(batches[x].size, devices, rank);
    size_t next = 0;
    for (int f = 0; f < exchange.numFeatures; ++f)
      for (int64_t b = bags.first; b < bags.second; ++b) {
        size_t length = batches[x]
                            .ids[static_cast<size_t>(f)][static_cast<size_t>(b)]
                            .size();
        auto from = local.weightGradient.begin() + static_cast<int64_t>(next);
        result
            .weightGradients[x][static_cast<size_t>(f)][static_cast<size_t>(b)]
            .assign(from, from + static_cast<int64_t>(length));
        next += length;
      }
  }
}

} // namespace

TestWorld::TestWorld(Model model, const std::vector<ShardPlace> &shards,
                     int devices, int threads)
    : TestWorld(model, makeManifest(model, shards, devices), threads) {}

TestWorld::TestWorld(Model testModel, const json &manifest, int threads)
    : model(std::move(testModel)), programs(makePrograms(model, manifest)) {
  setenv("NEUROSHARD_TIER_DIRECTORY", testing::TempDir().c_str(), 1);
  world = nsrt_world_create(manifest.dump().c_str(), programs.pointers.data(),
                            static_cast<int32_t>(programs.pointers.size()),
                            threads);
  if (!world) {
    message = nsrt_last_error();
    return;
  }
  for (int32_t p = 0; p < static_cast<int32_t>(programs.pointers.size()); ++p) {
    nsrt_world_register(world, p, "forward", hostForward);
    nsrt_world_register(world, p, "train", hostTrain);
  }
}

TestWorld::~TestWorld() {
  if (world)
    nsrt_world_close(world);
}

std::vector<float> TestWorld::table(int index) const {
  const Table &spec = model.tables[static_cast<size_t>(index)];
  std::vector<std::byte> raw(
      static_cast<size_t>(spec.rows * spec.dim * bytesOf(spec.type)));
  if (nsrt_table_read(world, index, 0, spec.rows, raw.data()) != 0)
    return {};
  std::vector<float> values;
  for (int64_t i = 0; i < spec.rows * spec.dim; ++i)
    values.push_back(loadElement(spec.type, raw.data(), i));
  return values;
}

void TestWorld::setTable(int index, const std::vector<float> &values) {
  const Table &spec = model.tables[static_cast<size_t>(index)];
  std::vector<std::byte> raw(values.size() *
                             static_cast<size_t>(bytesOf(spec.type)));
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(spec.type, raw.data(), static_cast<int64_t>(i), values[i]);
  nsrt_table_write(world, index, 0, spec.rows, raw.data());
}

std::vector<float> TestWorld::state(int table, int index) const {
  nsrt_table_info info;
  nsrt_world_table_info(world, table, &info);
  std::vector<float> values(
      static_cast<size_t>(info.rows * info.state_width[index]));
  if (nsrt_state_read(world, table, index, 0, info.rows, values.data()) != 0)
    return {};
  return values;
}

bool TestWorld::forward(const std::vector<Batch> &batches, StepResult &result) {
  return run("forward", batches, nullptr, 0, 0, result);
}

bool TestWorld::train(const std::vector<Batch> &batches,
                      const std::vector<Values> &gradients, float learningRate,
                      int64_t step, StepResult &result) {
  return run("train", batches, &gradients, learningRate, step, result);
}

bool TestWorld::run(const char *function, const std::vector<Batch> &batches,
                    const std::vector<Values> *gradients, float learningRate,
                    int64_t step, StepResult &result) {
  int devices = nsrt_world_num_devices(world);
  std::vector<LocalStep> steps;
  for (int rank = 0; rank < devices; ++rank) {
    LocalStep local{&model, {}, learningRate, step};
    for (size_t x = 0; x < batches.size(); ++x) {
      const Exchange &exchange = model.exchanges[x];
      auto bags = bagsOfRank(batches[x].size, devices, rank);
      local.exchanges.push_back(makeLocal(exchange, batches[x], bags));
      for (size_t k = 0; gradients && k < exchange.lookups.size(); ++k)
        local.exchanges[x].gradients.push_back(sliceGradient(
            exchange.lookups[k], batches[x], bags,
            model.tables[static_cast<size_t>(exchange.lookups[k].table)].dim,
            (*gradients)[x][k]));
    }
    steps.push_back(std::move(local));
  }
  std::vector<std::vector<void *>> args;
  std::vector<void **> argPointers;
  for (int rank = 0; rank < devices; ++rank)
    args.push_back(
        {nsrt_world_device(world, rank), &steps[static_cast<size_t>(rank)]});
  for (auto &list : args)
    argPointers.push_back(list.data());
  bool good = nsrt_invoke_all(world, function, argPointers.data()) == 0;
  message = good ? "" : nsrt_last_error();

  result = {};
  for (size_t x = 0; x < batches.size(); ++x) {
    result.results.emplace_back(model.exchanges[x].lookups.size());
    result.weightGradients.emplace_back(
        static_cast<size_t>(model.exchanges[x].numFeatures),
        std::vector<std::vector<float>>(static_cast<size_t>(batches[x].size)));
  }
  for (int rank = 0; rank < devices; ++rank)
    collect(model, steps[static_cast<size_t>(rank)], batches, devices, rank,
            result);
  return good;
}

} // namespace neuroshard::test
