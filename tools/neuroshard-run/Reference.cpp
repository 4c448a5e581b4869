//===- Reference.cpp - The unsharded program of an artifact ---------------===//

#include "Reference.h"

#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/Numerics.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

namespace neuroshard::run {

/// As the reference reads it: a quantized table as f32.
static Tensor readTable(nsrt_world *world, const TableSpec &table) {
  Tensor values(std::string(toString(valueType(table.elementType))),
                {table.rows, table.dim});
  int64_t bytes = rowBytes(table.dim, table.elementType);
  std::vector<std::byte> stored(static_cast<size_t>(table.rows * bytes));
  int32_t index = nsrt_world_find_table(world, table.name.c_str());
  if (index < 0 || nsrt_table_read(world, index, 0, table.rows, stored.data()))
    throw std::runtime_error("table '" + table.name + "': " +
                             (index < 0 ? "not there" : nsrt_last_error()));
  if (!isQuantized(table.elementType)) {
    values.bytes = std::move(stored);
    return values;
  }
  for (int64_t row = 0; row < table.rows; ++row)
    runtime::dequantizeRow(stored.data() + row * bytes, table.dim,
                           table.elementType,
                           values.as<float>() + row * table.dim);
  return values;
}

static std::vector<Tensor> readStates(nsrt_world *world,
                                      const TableSpec &table) {
  int32_t index = nsrt_world_find_table(world, table.name.c_str());
  nsrt_table_info info = {};
  if (nsrt_world_table_info(world, index, &info))
    throw std::runtime_error(nsrt_last_error());
  std::vector<Tensor> states;
  for (int32_t i = 0; i < info.num_states; ++i) {
    Tensor &state = states.emplace_back(
        "f32", std::vector<int64_t>{info.rows, info.state_width[i]});
    if (nsrt_state_read(world, index, i, 0, info.rows, state.as<float>()))
      throw std::runtime_error(nsrt_last_error());
  }
  return states;
}

std::optional<Reference> Reference::open(const std::string &directory,
                                         const Signature &signature,
                                         nsrt_world *world) {
  if (signature.referenceLibrary.empty())
    return std::nullopt;
  Reference reference;
  reference.signature = &signature;
  std::filesystem::path path =
      std::filesystem::absolute(directory) / signature.referenceLibrary;
  reference.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!reference.library)
    throw std::runtime_error(dlerror());
  for (const TableSpec &table : signature.tables) {
    reference.tables.push_back(readTable(world, table));
    reference.states.push_back(readStates(world, table));
  }
  return reference;
}

nsrt_host_function Reference::find(const std::string &name) const {
  auto entry = reinterpret_cast<nsrt_host_function>(
      dlsym(library, (NSRT_INVOKE_PREFIX + name).c_str()));
  if (!entry)
    throw std::runtime_error("the unsharded program lacks '" + name + "'");
  return entry;
}

bool Reference::addTable(const ValueSpec &spec, Call &call) {
  if (spec.kind == ValueKind::Weights) {
    call.addTensor(tables.at(spec.table));
    return true;
  }
  if (spec.kind != ValueKind::State)
    return false;
  Tensor &state = states.at(spec.table).at(spec.state);
  // One state per row has no second dimension there.
  if (spec.shape.size() == 1 && state.shape.size() == 2) {
    if (state.shape[1] != 1)
      throw std::runtime_error("a plan with per-shard states trains "
                               "differently from the unsharded program");
    state.shape.pop_back();
  }
  call.addTensor(state);
  return true;
}

std::vector<Tensor> Reference::run(const std::string &name,
                                   const std::vector<Value> &arguments) {
  const FunctionSpec &function =
      functionNamed(signature->referenceFunctions, name);
  Call call(function.results);
  auto next = arguments.begin();
  for (const ValueSpec &spec : function.arguments)
    if (!addTable(spec, call))
      call.addTensors(*next++);
  find(name)(call.arguments());
  std::vector<Tensor> results;
  for (Result &result : call.takeResults())
    results.push_back(std::move(result.tensor));
  return results;
}

void Reference::update(const Value &context, const Value &gradients,
                       float learningRate, int64_t step) {
  const FunctionSpec &function =
      functionNamed(signature->referenceFunctions, kUpdateName);
  Call call(function.results);
  call.addTensors(context);
  call.addTensors(gradients);
  call.addFloat(learningRate);
  call.addInteger(step);
  for (const ValueSpec &spec : function.arguments)
    addTable(spec, call);
  find(kUpdateName)(call.arguments());
  call.takeResults();
}

Difference Reference::compareTables(nsrt_world *world,
                                    const Tolerance &tolerance) const {
  std::vector<Tensor> actual;
  for (const TableSpec &table : signature->tables)
    actual.push_back(readTable(world, table));
  return compare(actual, tables, tolerance);
}

} // namespace neuroshard::run
