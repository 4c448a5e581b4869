//===- Drive.cpp - Runs, times and compares steps -------------------------===//

#include "Drive.h"

#include "Call.h"
#include "Devices.h"
#include "Difference.h"
#include "Reference.h"
#include "Train.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace neuroshard::run {

namespace {

template <typename... Values>
std::string format(const char *pattern, Values... values) {
  std::array<char, 256> line;
  std::snprintf(line.data(), line.size(), pattern, values...);
  return line.data();
}

template <typename Work> double milliseconds(Work &&work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - start)
      .count();
}

World openFilled(const DriveOptions &options) {
  World world = openWorld(options.directory, options.threadsPerDevice,
                          options.device, options.tierDirectory);
  if (nsrt_table_initialize(world.get(), -1, options.seed))
    throw std::runtime_error(nsrt_last_error());
  return world;
}

int64_t featuresOf(const Signature &signature, const ValueSpec &spec) {
  return spec.kind == ValueKind::Jagged
             ? static_cast<int64_t>(
                   signature.inputs.at(*spec.exchange).features.size())
             : 0;
}

/// The arguments of one device.
std::vector<Value> localInputs(const Signature &signature,
                               const FunctionSpec &function,
                               const std::vector<Value> &inputs, int64_t batch,
                               int64_t rank) {
  std::vector<Value> local;
  size_t next = 0;
  for (const ValueSpec &spec : function.arguments)
    if (spec.kind != ValueKind::Device)
      local.push_back(localPart(spec, inputs.at(next++),
                                featuresOf(signature, spec), batch, rank,
                                signature.devices));
  return local;
}

/// One step on all devices.
struct Step {
  std::vector<std::vector<Value>> inputs;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<void **> arguments;

  Step(nsrt_world *world, const Signature &signature,
       const FunctionSpec &function, const std::vector<Value> &whole,
       int64_t batch, Memory memory) {
    for (int32_t rank = 0; rank < nsrt_world_num_devices(world); ++rank) {
      inputs.push_back(localInputs(signature, function, whole, batch, rank));
      calls.push_back(std::make_unique<Call>(function.results, memory));
      calls.back()->addDevice(nsrt_world_device(world, rank));
      for (const Value &value : inputs.back())
        calls.back()->addTensors(value);
      arguments.push_back(calls.back()->arguments());
    }
  }

  double run(nsrt_world *world, const std::string &name) {
    int32_t status = 0;
    double ms = milliseconds([&] {
      status = nsrt_invoke_all(world, name.c_str(), arguments.data());
    });
    if (status)
      throw std::runtime_error(nsrt_last_error());
    return ms;
  }

  /// The local results one below the other, in the order of the batch.
  std::vector<Tensor> takeResults() {
    std::vector<Tensor> joined;
    for (Result &result : calls.front()->takeResults())
      joined.push_back(std::move(result.tensor));
    for (size_t rank = 1; rank < calls.size(); ++rank) {
      std::vector<Result> part = calls[rank]->takeResults();
      for (size_t i = 0; i < joined.size(); ++i) {
        const Tensor &local = part[i].tensor;
        if (local.shape.empty())
          throw std::runtime_error("cannot join result " + std::to_string(i) +
                                   " of the devices: it has no batch");
        joined[i].shape.at(0) += local.shape[0];
        joined[i].bytes.insert(joined[i].bytes.end(), local.bytes.begin(),
                               local.bytes.end());
      }
    }
    return joined;
  }
};

void printPhases(nsrt_world *world, int64_t steps, std::ostream &out) {
  int32_t devices = nsrt_world_num_devices(world);
  out << "phases, ms per step (mean and largest over the devices), MB sent\n";
  for (int32_t phase = 0; phase < nsrt_num_phases(); ++phase) {
    double sum = 0, largest = 0, bytes = 0;
    for (int32_t rank = 0; rank < devices; ++rank) {
      nsrt_device *device = nsrt_world_device(world, rank);
      double ms = nsrt_device_phase_ms(device, phase) / steps;
      sum += ms;
      largest = std::max(largest, ms);
      bytes += static_cast<double>(nsrt_device_phase_bytes(device, phase));
    }
    if (largest > 0)
      out << format("  %-20s %9.3f %9.3f %9.3f\n", nsrt_phase_name(phase),
                    sum / devices, largest, bytes / 1e6 / steps);
  }
}

void printMemory(nsrt_world *world, std::ostream &out) {
  for (int32_t rank = 0; rank < nsrt_world_num_devices(world); ++rank) {
    nsrt_device *device = nsrt_world_device(world, rank);
    auto mebibytes = [&](int32_t kind) {
      return nsrt_device_memory_bytes(device, kind) /
             static_cast<double>(1 << 20);
    };
    out << format("device %d: weights %.1f MiB, state %.1f MiB, buffers %.1f "
                  "MiB\n",
                  rank, mebibytes(NSRT_MEMORY_WEIGHTS),
                  mebibytes(NSRT_MEMORY_STATE), mebibytes(NSRT_MEMORY_BUFFERS));
  }
}

void printCaches(nsrt_world *world, std::ostream &out) {
  for (int32_t rank = 0; rank < nsrt_world_num_devices(world); ++rank) {
    nsrt_device *device = nsrt_world_device(world, rank);
    for (int32_t i = 0; i < nsrt_device_num_shards(device); ++i) {
      nsrt_cache_figures cache;
      if (nsrt_device_cache(device, i, &cache) || cache.places == 0)
        continue;
      auto per = static_cast<double>(std::max<int64_t>(cache.batches, 1));
      out << format("device %d: cache of shard \"%s\": %.1f rows per step, "
                    "%.2f %% hits, %.1f written back, waited %.2f ms\n",
                    rank, cache.name, static_cast<double>(cache.rows) / per,
                    cache.rows > 0 ? 100.0 * static_cast<double>(cache.hits) /
                                         static_cast<double>(cache.rows)
                                   : 100.0,
                    static_cast<double>(cache.written) / per,
                    static_cast<double>(cache.wait_nanoseconds) / 1e6 / per);
    }
  }
}

void checkDifference(const Difference &difference, const Signature &signature,
                     std::ostream &out) {
  out << format("  largest difference %.3g (largest value %.3g), %lld of %lld "
                "values differ\n",
                difference.largest, difference.largestValue,
                static_cast<long long>(difference.differing),
                static_cast<long long>(difference.elements));
  if (difference.beyond > 0)
    throw std::runtime_error(format(
        "the result differs from the unsharded program by %.3g, more "
        "than %.3g; results and gradients travel as %s, and --tolerance sets "
        "another limit",
        difference.worst, difference.worstLimit,
        toString(signature.wireType).c_str()));
}

/// A batch on all devices and in the unsharded program.
class Driver {
public:
  Driver(const DriveOptions &options, Signature opened, std::ostream &out)
      : options(options), out(out), signature(std::move(opened)),
        function(wholeStepNamed(signature.functions, options.function)),
        world(openFilled(options)),
        reference(Reference::open(options.directory, signature, world.get())),
        random(options.seed), randomGradients(options.seed) {}

  void run();

private:
  /// A batch, and its ids where they have been sent.
  struct Batch {
    std::vector<Value> inputs;
    Step step;
    std::optional<SentIds> sent;
  };

  void drawBatch();
  void sendIdsOf(Batch &batch);
  /// Sends the ids of the batches after the first in their order.
  void sendNext();
  void forward(int64_t number, Batch &batch);
  void train(int64_t number, const Batch &batch);
  /// The coarsest type to which updates round: gradients, or rows of tables.
  WireFormat roundingsOfUpdates() const;
  /// The jagged ones among the arguments of `function`, in the order in which
  /// a training step takes them.
  std::vector<Value> idsOf(const std::vector<Value> &arguments) const;

  const DriveOptions &options;
  std::ostream &out;
  Signature signature;
  const FunctionSpec &function;
  World world;
  std::optional<Reference> reference;
  /// Apart, so that batches and gradients do not depend on the order in which
  /// they are drawn.
  std::mt19937_64 random, randomGradients;
  /// This step's batch and those after it.
  std::deque<Batch> batches;
};

void Driver::drawBatch() {
  std::vector<Value> inputs =
      randomInputs(signature, function, options.batch, options.pooling, random);
  Step step(world.get(), signature, function, inputs, options.batch,
            memoryOf(options.device, function));
  batches.push_back({std::move(inputs), std::move(step), std::nullopt});
}

void Driver::sendIdsOf(Batch &batch) {
  std::vector<std::vector<Value>> localIds;
  for (const std::vector<Value> &local : batch.step.inputs)
    localIds.push_back(idsOf(local));
  batch.sent = sendIds(world.get(), options.device, signature, localIds);
}

void Driver::sendNext() {
  for (auto batch = batches.begin() + 1; batch != batches.end(); ++batch)
    if (!batch->sent)
      sendIdsOf(*batch);
}

void Driver::forward(int64_t number, Batch &batch) {
  double ms = batch.step.run(world.get(), options.function);
  std::vector<Tensor> results = batch.step.takeResults();
  out << format("step %lld: %.2f ms", static_cast<long long>(number), ms);
  if (!reference) {
    out << "\n";
    return;
  }
  std::vector<Tensor> expected;
  double unsharded = milliseconds(
      [&] { expected = reference->run(options.function, batch.inputs); });
  out << format(", unsharded on one thread %.2f ms\n", unsharded);
  Tolerance tolerance{signature.wireType.results, 1, options.tolerance};
  if (options.train && number > 1) // updates of earlier steps are in the tables
    tolerance.travelled = coarser(tolerance.travelled, roundingsOfUpdates());
  checkDifference(compare(results, expected, tolerance), signature, out);
}

WireFormat Driver::roundingsOfUpdates() const {
  WireFormat format = signature.wireType.gradients;
  for (const TableSpec &table : signature.tables)
    format = coarser(format, formatOf(table.elementType));
  return format;
}

std::vector<Value> Driver::idsOf(const std::vector<Value> &arguments) const {
  std::map<std::optional<int32_t>, Value> idsOfExchange;
  auto next = arguments.begin();
  for (const ValueSpec &spec : function.arguments) {
    if (spec.kind == ValueKind::Device)
      continue;
    if (spec.kind == ValueKind::Jagged)
      idsOfExchange[spec.exchange] = *next;
    ++next;
  }
  std::vector<Value> ids;
  for (const ValueSpec &spec :
       functionNamed(signature.functions, kStartName).arguments)
    if (spec.kind == ValueKind::Jagged)
      ids.push_back(idsOfExchange.at(spec.exchange));
  return ids;
}

void Driver::train(int64_t number, const Batch &batch) {
  TrainingStep done = run::train(world.get(), options.device, signature,
                                 *batch.sent, options.learningRate, number,
                                 randomGradients, [&] { sendNext(); });
  out << format("  training: start %.2f ms, lookup %.2f ms, wait %.2f ms, "
                "gradients %.2f ms, update %.2f ms",
                done.startMs, done.lookupMs, done.waitMs, done.gradientsMs,
                done.updateMs);
  if (!reference) {
    out << "\n";
    return;
  }
  Value context;
  for (const Value &ids : idsOf(batch.inputs))
    context.insert(context.end(), ids.begin(), ids.end());
  double unsharded = milliseconds([&] {
    reference->update(context, done.gradients, options.learningRate, number);
  });
  out << format(", unsharded update %.2f ms; tables:\n", unsharded);
  checkDifference(
      reference->compareTables(world.get(), {signature.wireType.gradients,
                                             number, options.tolerance}),
      signature, out);
}

void Driver::run() {
  out << format("%s on %lld devices, global batch %lld, %s\n",
                options.function.c_str(),
                static_cast<long long>(signature.devices),
                static_cast<long long>(options.batch),
                reference ? "compared with the unsharded program"
                          : "no unsharded program to compare with");
  for (int64_t number = 1; number <= options.steps; ++number) {
    int64_t left = options.steps - number + 1;
    while (std::ssize(batches) < std::min(options.pipelineDepth, left))
      drawBatch();
    Batch &batch = batches.front();
    forward(number, batch);
    if (options.train) {
      if (!batch.sent)
        sendIdsOf(batch);
      train(number, batch);
    }
    batches.pop_front();
  }
  printPhases(world.get(), options.steps, out);
  printMemory(world.get(), out);
  printCaches(world.get(), out);
}

} // namespace

void drive(DriveOptions options, std::ostream &out) {
  if (options.pipelineDepth > 1 && !options.train)
    throw std::runtime_error("--pipeline-depth is about training steps; "
                             "expected --train with it");
  Signature signature = readSignature(options.directory);
  if (options.train && !signature.driftingTable.empty() &&
      !signature.referenceLibrary.empty())
    throw std::runtime_error(
        "copies of table '" + signature.driftingTable +
        "' drift (sync_every), so that training differs from that of the "
        "unsharded program; leave out --train, or compile without --reference "
        "or sync_every");
  if (!options.workload.empty())
    readMeans(options.workload, signature, options.pooling);
  Driver(options, std::move(signature), out).run();
}

} // namespace neuroshard::run
