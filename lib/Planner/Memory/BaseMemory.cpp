//===- BaseMemory.cpp - Memory of a device apart from shards --------------===//

#include "StepBytes.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Planner/Memory.h"

#include <optional>

using namespace neuroshard;

/// Ids and results of a device's part of the batch, alike on all.
static MemoryTerms batchMemory(const ShardingProblem &problem) {
  MemoryTerms terms;
  ElementType output = problem.batch.outputType;
  WireType wire = problem.batch.wireType;
  int64_t outputBytes = elementBytes(output);
  for (const Feature &feature : problem.features) {
    const Table &table = problem.tables[static_cast<size_t>(feature.table)];
    int64_t samples = localSamples(problem, feature);
    int64_t rows = resultRows(feature, samples, 1.0), dim = table.dim;
    int64_t input =
        inputBytes(problem, feature, problem.batch.idType, samples, 1.0);
    terms.idsBytes += problem.batch.inputCopies * input;
    addKept(problem, input + rows * rowBytes(wire.gradients, dim), terms);
    terms.forwardBytes +=
        rows * (dim * outputBytes + castRowBytes(output, wire.results, dim));
    terms.backwardBytes += rows * (2 * dim * outputBytes +
                                   castRowBytes(output, wire.gradients, dim));
  }
  if (problem.mode == StepMode::Inference)
    terms.backwardBytes = 0;
  return terms;
}

static void addReserves(const ShardingProblem &problem, const Device &device,
                        MemoryTerms &terms) {
  const DeviceClass *deviceClass =
      findDeviceClass(problem.topology, device.deviceClass);
  if (!deviceClass)
    return;
  const Reserves &wanted = problem.constraints.reserves;
  const Reserves &measured = device.reserves;
  auto choose = [&](std::optional<int64_t> Reserves::*which, int64_t usual) {
    return (wanted.*which).value_or((measured.*which).value_or(usual));
  };
  terms.denseReserveBytes =
      choose(&Reserves::denseBytes, deviceClass->denseReserveBytes);
  terms.fragmentationReserveBytes = choose(
      &Reserves::fragmentationBytes, deviceClass->fragmentationReserveBytes);
  // One device has no communicator, but what was measured is of its process.
  if (problem.topology.deviceCount() > 1 || measured.communicatorBytes)
    terms.communicatorBytes = choose(&Reserves::communicatorBytes,
                                     deviceClass->communicatorReserveBytes);
}

std::vector<MemoryTerms>
neuroshard::deviceBaseMemory(const ShardingProblem &problem) {
  const std::vector<Device> &devices = problem.topology.devices;
  if (problem.memoryModel == MemoryModel::WeightsOnly)
    return std::vector<MemoryTerms>(devices.size());
  std::vector<MemoryTerms> all(devices.size(), batchMemory(problem));
  for (size_t device = 0; device < devices.size(); ++device)
    addReserves(problem, devices[device], all[device]);
  return all;
}

int64_t neuroshard::columnPermuteBytes(const ShardingProblem &problem,
                                       const Table &table,
                                       const std::vector<int> &features) {
  if (problem.memoryModel == MemoryModel::WeightsOnly)
    return 0;
  int64_t bytes = 0;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    int64_t samples = localSamples(problem, feature);
    bytes += resultRows(feature, samples, 1.0) * table.dim *
             elementBytes(problem.batch.outputType);
  }
  return bytes;
}
