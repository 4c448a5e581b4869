//===- Reference.cpp - The unsharded program of an artifact ---------------===//

#include "Reference.h"

#include "Call.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace neuroshard::run {

static Tensor readTable(nsrt_world *world, const TableSpec &table) {
  Tensor values(table.type, {table.rows, table.dim});
  int32_t index = nsrt_world_find_table(world, table.name.c_str());
  if (index < 0 ||
      nsrt_table_read(world, index, 0, table.rows, values.bytes.data()))
    throw std::runtime_error("table '" + table.name + "': " +
                             (index < 0 ? "not there" : nsrt_last_error()));
  return values;
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
  for (const TableSpec &table : signature.tables)
    reference.tables.push_back(readTable(world, table));
  return reference;
}

std::vector<Tensor> Reference::run(const std::string &name,
                                   const std::vector<Value> &arguments) const {
  const FunctionSpec &function =
      functionNamed(signature->referenceFunctions, name);
  auto entry = reinterpret_cast<nsrt_host_function>(
      dlsym(library, ("nsrt_invoke_" + name).c_str()));
  if (!entry)
    throw std::runtime_error("the unsharded program lacks '" + name + "'");
  Call call(function.results);
  auto next = arguments.begin();
  for (const ValueSpec &spec : function.arguments)
    if (spec.kind == ValueSpec::Kind::Weights)
      call.addTensor(tables.at(spec.table));
    else
      call.addTensors(*next++);
  entry(call.arguments());
  return call.takeResults();
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
