//===- Train.cpp - Runs one training step ---------------------------------===//

#include "Train.h"

#include "Call.h"
#include "Devices.h"
#include "Difference.h"

#include "neuroshard/Runtime/Numerics.h"

#include <chrono>
#include <memory>
#include <stdexcept>

namespace neuroshard::run {

namespace {

/// One function on all devices.
class Everywhere {
public:
  Everywhere(nsrt_world *world, const std::string &deviceName,
             const Signature &signature, const char *name)
      : world(world), name(name) {
    const FunctionSpec &function = functionNamed(signature.functions, name);
    Memory memory = memoryOf(deviceName, function);
    for (int64_t rank = 0; rank < signature.devices; ++rank) {
      calls.push_back(std::make_unique<Call>(function.results, memory));
      calls.back()->addDevice(
          nsrt_world_device(world, static_cast<int32_t>(rank)));
    }
  }

  Call &on(size_t rank) { return *calls[rank]; }

  /// Milliseconds.
  double run() {
    std::vector<void **> arguments;
    for (auto &call : calls)
      arguments.push_back(call->arguments());
    auto begin = std::chrono::steady_clock::now();
    if (nsrt_invoke_all(world, name, arguments.data()))
      throw std::runtime_error(nsrt_last_error());
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now() - begin)
        .count();
  }

  Results takeResults() {
    Results results;
    for (auto &call : calls)
      results.push_back(call->takeResults());
    return results;
  }

private:
  nsrt_world *world;
  const char *name;
  std::vector<std::unique_ptr<Call>> calls;
};

/// Hands on what an earlier function has returned.
void addResults(const Results &earlier, Everywhere &function) {
  for (size_t rank = 0; rank < earlier.size(); ++rank)
    for (const Result &result : earlier[rank])
      function.on(rank).addResult(result);
}

int64_t numLookups(const Signature &signature) {
  int64_t count = 0;
  for (const InputSpec &input : signature.inputs)
    count += input.lookups;
  return count;
}

/// A gradient for the whole batch, of the type of the results of one lookup:
/// from 0.5 to 1, and negative in every second column. So no gradients of a row
/// cancel each other, and their sum has the relative error of its terms. Where
/// they cancel, roundings decide the sign of the sum, and with it where Adagrad
/// and Adam go.
Tensor randomGradient(const Results &results, int64_t lookup,
                      std::mt19937_64 &random) {
  const Tensor &first = results.front().at(lookup).tensor;
  int64_t rows = 0;
  for (const std::vector<Result> &local : results)
    rows += local[lookup].tensor.shape[0];
  Tensor values("f32", {rows, first.shape.at(1)});
  fillUniform(values, 0.5, 1, random);
  int64_t width = values.shape[1];
  for (int64_t i = 0; i < values.elements(); ++i)
    if (i % width % 2 == 1)
      values.as<float>()[i] *= -1;
  Tensor gradient(first.type, values.shape);
  runtime::storeElements(values.as<float>(), values.elements(),
                         typeOfElements(gradient), gradient.bytes.data());
  return gradient;
}

/// The rows of each gradient that belong to each device's results.
std::vector<Value> localGradients(const Results &results,
                                  const Value &gradients) {
  std::vector<Value> local(results.size());
  for (size_t lookup = 0; lookup < gradients.size(); ++lookup) {
    int64_t begin = 0;
    for (size_t rank = 0; rank < results.size(); ++rank) {
      int64_t end = begin + results[rank][lookup].tensor.shape[0];
      local[rank].push_back(sliceRows(gradients[lookup], begin, end));
      begin = end;
    }
  }
  return local;
}

} // namespace

SentIds sendIds(nsrt_world *world, const std::string &device,
                const Signature &signature,
                const std::vector<std::vector<Value>> &localIds) {
  Everywhere start(world, device, signature, kStartName);
  for (size_t rank = 0; rank < localIds.size(); ++rank)
    for (const Value &ids : localIds[rank])
      start.on(rank).addTensors(ids);
  double ms = start.run();
  return {ms, start.takeResults()};
}

TrainingStep train(nsrt_world *world, const std::string &device,
                   const Signature &signature, const SentIds &ids,
                   float learningRate, int64_t step, std::mt19937_64 &random,
                   const std::function<void()> &sendNext) {
  TrainingStep done;
  done.startMs = ids.ms;

  Everywhere lookup(world, device, signature, kLookupName);
  addResults(ids.pending, lookup);
  done.lookupMs = lookup.run();
  Results pending = lookup.takeResults();

  Everywhere wait(world, device, signature, kWaitName);
  addResults(pending, wait);
  done.waitMs = wait.run();
  Results results = wait.takeResults();
  sendNext();

  int64_t lookups = numLookups(signature);
  for (int64_t lookup = 0; lookup < lookups; ++lookup)
    done.gradients.push_back(randomGradient(results, lookup, random));
  std::vector<Value> gradients = localGradients(results, done.gradients);

  Everywhere send(world, device, signature, kGradientsName);
  for (size_t rank = 0; rank < results.size(); ++rank) {
    Call &call = send.on(rank);
    for (size_t i = lookups; i < results[rank].size(); ++i)
      call.addResult(results[rank][i]);
    call.addTensors(gradients[rank]);
  }
  done.gradientsMs = send.run();
  Results inFlight = send.takeResults();

  Everywhere update(world, device, signature, kUpdateName);
  for (size_t rank = 0; rank < inFlight.size(); ++rank) {
    Call &call = update.on(rank);
    for (const Result &result : inFlight[rank])
      if (result.handle)
        call.addResult(result);
    call.addFloat(learningRate);
    call.addInteger(step);
  }
  done.updateMs = update.run();
  return done;
}

} // namespace neuroshard::run
