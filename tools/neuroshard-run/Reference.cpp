//===- Reference.cpp - The unsharded program of an artifact ---------------===//

#include "Reference.h"

#include "neuroshard/Runtime/KernelABI.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace neuroshard::run {

static Tensor readTable(nsrt_world *world, const TableSpec &table) {
  Tensor values(std::string(toString(table.elementType)),
                {table.rows, table.dim});
  int32_t index = nsrt_world_find_table(world, table.name.c_str());
  if (index < 0 ||
      nsrt_table_read(world, index, 0, table.rows, values.bytes.data()))
    throw std::runtime_error("table '" + table.name + "': " +
                             (index < 0 ? "not there" : nsrt_last_error()));
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

Difference Reference::compareTables(nsrt_world *world) const {
  std::vector<Tensor> actual, expected;
  for (size_t i = 0; i < tables.size(); ++i)
    if (tables[i].type == "f32") {
      actual.push_back(readTable(world, signature->tables[i]));
      expected.push_back(tables[i]);
    }
  return compare(actual, expected);
}

static void compare(const Tensor &actual, const Tensor &expected,
                    Difference &total) {
  if (actual.shape != expected.shape || actual.type != "f32")
    throw std::runtime_error("results differ in shape, or are not f32");
  for (int64_t i = 0; i < actual.elements(); ++i) {
    float a = actual.as<float>()[i], b = expected.as<float>()[i];
    double difference = std::abs(static_cast<double>(a) - b);
    // A value that is not a number is as far away as can be.
    if (std::isnan(difference))
      difference = INFINITY;
    total.largest = std::max(total.largest, difference);
    total.largestValue =
        std::max(total.largestValue, std::abs(static_cast<double>(b)));
    total.differing += std::memcmp(&a, &b, sizeof(a)) != 0;
  }
  total.elements += actual.elements();
}

Difference compare(const std::vector<Tensor> &actual,
                   const std::vector<Tensor> &expected) {
  Difference total;
  for (size_t i = 0; i < actual.size(); ++i)
    compare(actual[i], expected.at(i), total);
  return total;
}

} // namespace neuroshard::run
