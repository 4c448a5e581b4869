//===- Heads.cpp - Speed of neural inference ------------------------------===//

#include "Bench.h"
#include "RandomModel.h"

#include "neuroshard/CostModel/NeuralCompute.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace neuroshard {

namespace {

using Clock = std::chrono::steady_clock;

struct HeadsOptions {
  std::string model;
  double seconds = 1;
  int threads = 2;
};

/// Sums of a device each, as a search holds them.
std::vector<double> randomSums(size_t rows, size_t width) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-3, 4);
  std::vector<double> sums(rows * width);
  for (double &sum : sums)
    sum = std::exp(exponent(random));
  return sums;
}

/// Evaluations per second of one thread, in calls of `rows` rows.
double rate(const NeuralCompute &model, size_t rows, double seconds) {
  size_t width = static_cast<size_t>(model.size());
  std::vector<double> sums = randomSums(rows, width);
  std::vector<int> counts(rows, 1);
  std::vector<ComputeMs> out(rows);
  int64_t done = 0;
  auto begin = Clock::now();
  double passed = 0;
  while (passed < seconds) {
    for (int i = 0; i < 16; ++i)
      model.heads(sums, width, counts, out);
    done += 16 * static_cast<int64_t>(rows);
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return static_cast<double>(done) / passed;
}

double rateOfThreads(const NeuralCompute &model, size_t rows, double seconds,
                     int threads) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (double &result : rates)
    workers.emplace_back([&] { result = rate(model, rows, seconds); });
  double total = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].join();
    total += rates[i];
  }
  return total;
}

void printRates(const char *name, const NeuralCompute &model,
                const HeadsOptions &options) {
  for (int threads = 1; threads <= options.threads; threads *= 2)
    for (size_t rows : {1, 32, 1024})
      std::printf("%-12s %8d %8zu %14.2f\n", name, threads, rows,
                  rateOfThreads(model, rows, options.seconds, threads) / 1e6);
}

/// Shards embedded per second, which a search does once per shard.
double embeddingRate(const NeuralCompute &model, double seconds) {
  ShardWork shard;
  shard.rows = shard.tableRows = 1'000'000;
  shard.width = shard.tableDim = 64;
  shard.pooling = 20;
  shard.features = 1;
  shard.lookups = shard.updateLookups = 40960;
  shard.outputRows = shard.updateGradientRows = 2048;
  shard.uniqueRows = shard.updateUniqueRows = 30000;
  std::vector<double> out(static_cast<size_t>(model.size()));
  const DeviceClass &deviceClass = deviceClasses().front();
  int64_t done = 0;
  auto begin = Clock::now();
  double passed = 0;
  for (; passed < seconds; done += 16) {
    for (int i = 0; i < 16; ++i)
      model.embed(shard, deviceClass, out);
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return static_cast<double>(done) / passed;
}

Expected<std::unique_ptr<NeuralCompute>> readModel(const std::string &path) {
  Expected<TensorFile> file = readTensorFile(path);
  Expected<NeuralComputeParameters> parameters =
      file ? toComputeParameters(*file) : tl::unexpected(file.error());
  if (!parameters)
    return tl::unexpected(parameters.error());
  return std::make_unique<NeuralCompute>(*parameters);
}

Expected<void> runHeads(const HeadsOptions &options) {
  std::printf("%-12s %8s %8s %14s\n", "model", "threads", "rows",
              "M heads / s");
  if (!options.model.empty()) {
    Expected<std::unique_ptr<NeuralCompute>> model = readModel(options.model);
    if (!model)
      return tl::unexpected(model.error());
    printRates("file", **model, options);
    std::printf("embeddings: %.0f k / s\n",
                embeddingRate(**model, options.seconds) / 1e3);
    return {};
  }
  NeuralCompute three(randomModel(3, "CPU")), one(randomModel(1, "CPU"));
  printRates("3 members", three, options);
  printRates("1 member", one, options);
  std::printf("embeddings of 3 members: %.0f k / s\n",
              embeddingRate(three, options.seconds) / 1e3);
  return {};
}

} // namespace

void addHeadsBenchmark(CommandLine &line) {
  auto options = std::make_shared<HeadsOptions>();
  Command command = line.addCommand(
      "heads", "Head evaluations of a neural compute model per second");
  command.add("--model", options->model,
              "a compute model's file; without it random weights");
  command.add("--seconds", options->seconds, "per line").range(0.001, 60.0);
  command.add("--threads", options->threads, "1, 2, ... up to this")
      .range(1, 256);
  command.action([options] { return runHeads(*options); });
}

} // namespace neuroshard
