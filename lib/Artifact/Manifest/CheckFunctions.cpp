//===- CheckFunctions.cpp - Checks of a manifest's functions --------------===//
//
// Callers pass memory by these descriptions, so a wrong one is a wrong access.
// The arguments and results of a dense part are the compiler's word alone,
// unless there is a reference to compare with.
//
//===----------------------------------------------------------------------===//

#include "CheckFunctions.h"

#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/StepNames.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

namespace neuroshard {
namespace {

using Values = std::vector<ValueSpec>;

const FunctionSpec *find(const std::vector<FunctionSpec> &functions,
                         const std::string &name) {
  for (const FunctionSpec &function : functions)
    if (function.name == name)
      return &function;
  return nullptr;
}

bool isTable(const ValueSpec &value) {
  return value.kind == ValueKind::Weights || value.kind == ValueKind::State;
}

bool isHandle(const ValueSpec &value) {
  return value.kind == ValueKind::Handle;
}

/// Results of a lookup, or their gradient.
bool isRows(const ValueSpec &value) {
  return value.kind == ValueKind::Tensor && value.shape.size() == 2;
}

/// What a step keeps from one of its functions to the next: handles, and the
/// ids and sample weights of inputs.
bool isState(const ValueSpec &value) {
  return isHandle(value) || (value.kind == ValueKind::Tensor &&
                             value.shape == std::vector<int64_t>{-1});
}

template <typename Keep> Values filter(const Values &values, Keep keep) {
  Values kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept), keep);
  return kept;
}

/// Whether both are the same memory for a caller.
bool isSame(const ValueSpec &a, const ValueSpec &b) {
  return a.kind == b.kind && a.type == b.type && a.shape == b.shape &&
         a.weighted == b.weighted && a.features == b.features;
}

ValueSpec makeValue(ValueKind kind, std::string type,
                    std::vector<int64_t> shape = {}) {
  ValueSpec value;
  value.kind = kind;
  value.type = std::move(type);
  value.shape = std::move(shape);
  return value;
}

/// The functions of device programs, or those of the reference.
class FunctionChecker {
public:
  FunctionChecker(const Manifest &manifest, std::string path)
      : manifest(manifest), path(std::move(path)) {}

  void checkValues(const FunctionSpec &function, bool isReference) const {
    const Values &arguments = function.arguments;
    bool needsDevice =
        !isReference && std::any_of(arguments.begin(), arguments.end(),
                                    [](const ValueSpec &value) {
                                      return value.exchange || isHandle(value);
                                    });
    if (needsDevice && arguments[0].kind != ValueKind::Device)
      failAt(function, "args", 0, "a device, which lookups need");
    for (size_t i = 0; i < arguments.size(); ++i) {
      ValueKind kind = arguments[i].kind;
      bool isFitting =
          isReference
              ? kind != ValueKind::Device && kind != ValueKind::Handle
              : !isTable(arguments[i]) && (kind != ValueKind::Device || i == 0);
      if (!isFitting)
        failAt(function, "args", i,
               isReference ? "no device and no handle"
                           : "no table, and a device as the first alone");
      if (isTable(arguments[i]))
        checkTable(function, i);
      else if (kind == ValueKind::Jagged)
        checkJagged(function, i);
      if (isReference && i > 0 && isTable(arguments[i - 1]) &&
          !isTable(arguments[i]))
        failAt(function, "args", i, "tables after all other arguments");
    }
    for (size_t i = 0; i < function.results.size(); ++i)
      if (ValueKind kind = function.results[i].kind;
          kind != ValueKind::Tensor && kind != ValueKind::Scalar &&
          (isReference || kind != ValueKind::Handle))
        failAt(function, "results", i,
               isReference ? "a tensor or a scalar"
                           : "a tensor, a scalar or a handle");
  }

  template <typename Same>
  void expectValues(const FunctionSpec &function, const char *list,
                    const Values &found, const Values &expected, Same isSame,
                    const std::string &why) const {
    if (!std::equal(found.begin(), found.end(), expected.begin(),
                    expected.end(), isSame))
      fail("manifest: ", path, ".", function.name, ".", list, ": expected ",
           why);
  }

private:
  void checkTable(const FunctionSpec &function, size_t index) const {
    const ValueSpec &value = function.arguments[index];
    const TableSpec &table = manifest.tables[static_cast<size_t>(value.table)];
    std::vector<int64_t> whole = {table.rows, table.dim};
    bool isFitting =
        value.kind == ValueKind::Weights
            ? value.type == toString(valueType(table.elementType)) &&
                  value.shape == whole
            : value.type == "f32" &&
                  value.state < table.visibleStates().count() &&
                  (value.shape == whole ||
                   value.shape == std::vector<int64_t>{table.rows});
    if (!isFitting)
      failAt(function, "args", index,
             "the type and shape of table \"" + table.name + "\"");
  }

  void checkJagged(const FunctionSpec &function, size_t index) const {
    const ValueSpec &value = function.arguments[index];
    if (value.type != "i32" && value.type != "i64")
      failAt(function, "args", index, "ids of type i32 or i64");
    if (!value.exchange)
      return;
    const ExchangeSpec &exchange =
        manifest.exchanges[static_cast<size_t>(*value.exchange)];
    if (value.type != toString(exchange.idType) ||
        value.weighted != exchange.weighted ||
        value.features != exchange.features)
      failAt(function, "args", index,
             "the id_type, weighted and features of its exchange");
  }

  [[noreturn]] void failAt(const FunctionSpec &function, const char *list,
                           size_t index, const std::string &expected) const {
    fail("manifest: ", path, ".", function.name, ".", list, "[", index,
         "]: expected ", expected);
  }

  const Manifest &manifest;
  std::string path;
};

size_t numLookups(const Manifest &manifest) {
  size_t count = 0;
  for (const ExchangeSpec &exchange : manifest.exchanges)
    count += exchange.lookups.size();
  return count;
}

/// Exchanges whose sample weights have gradients.
size_t numWeighted(const Manifest &manifest) {
  return static_cast<size_t>(std::count_if(
      manifest.exchanges.begin(), manifest.exchanges.end(),
      [](const ExchangeSpec &exchange) {
        return std::any_of(
            exchange.lookups.begin(), exchange.lookups.end(),
            [](const ExchangeLookup &lookup) { return lookup.weighted; });
      }));
}

void expectResultsOf(const FunctionSpec &earlier, const FunctionSpec &function,
                     const FunctionChecker &checker) {
  Values expected = earlier.results;
  expected.insert(expected.begin(), ValueSpec());
  checker.expectValues(function, "args", function.arguments, expected, isSame,
                       "a device and the results of " + earlier.name);
}

/// What wait returns, with all its tensors in one.
Values joinedResults(const FunctionSpec &wait) {
  Values rows = filter(wait.results, isRows);
  if (rows.empty())
    return {};
  ValueSpec all = rows.front();
  all.shape.back() = 0;
  for (const ValueSpec &one : rows)
    all.shape.back() += one.shape.back();
  Values joined = filter(wait.results, isState);
  joined.insert(joined.begin(), all);
  return joined;
}

/// What one part of a step returns, the next takes.
void checkSteps(const Manifest &manifest, const FunctionChecker &checker) {
  const FunctionSpec *start = find(manifest.functions, kStartName);
  const FunctionSpec *lookup = find(manifest.functions, kLookupName);
  const FunctionSpec *wait = find(manifest.functions, kWaitName);
  const FunctionSpec *gradients = find(manifest.functions, kGradientsName);
  const FunctionSpec *update = find(manifest.functions, kUpdateName);
  if (!start || !lookup || !wait)
    return;
  ValueSpec device;
  Values expected = filter(start->arguments, [](const ValueSpec &value) {
    return value.exchange.has_value();
  });
  std::set<int32_t> exchanges;
  for (const ValueSpec &value : expected)
    exchanges.insert(*value.exchange);
  if (exchanges.size() == manifest.exchanges.size())
    expected.insert(expected.begin(), device);
  checker.expectValues(*start, "args", start->arguments, expected, isSame,
                       "a device and the input of each exchange");
  checker.expectValues(*start, "results", start->results,
                       filter(start->results, isState), isSame,
                       "handles and ids");
  expectResultsOf(*start, *lookup, checker);
  expected = start->results;
  expected.insert(expected.end(), manifest.exchanges.size(),
                  makeValue(ValueKind::Handle, ""));
  checker.expectValues(*lookup, "results", lookup->results, expected, isSame,
                       std::string("the results of ") + kStartName +
                           ", then a handle for each exchange");
  expectResultsOf(*lookup, *wait, checker);
  Values rows = filter(wait->results, isRows);
  Values state = filter(wait->results, isState);
  expected = rows;
  expected.insert(expected.end(), state.begin(), state.end());
  if (rows.size() != numLookups(manifest))
    expected.clear();
  checker.expectValues(*wait, "results", wait->results, expected, isSame,
                       "a tensor of rows for each of the " +
                           std::to_string(numLookups(manifest)) +
                           " lookups, then handles and ids");
  if (const FunctionSpec *joined = find(manifest.functions, kJoinedWaitName)) {
    expectResultsOf(*lookup, *joined, checker);
    checker.expectValues(*joined, "results", joined->results,
                         joinedResults(*wait), isSame,
                         std::string("those of ") + kWaitName +
                             ", with one tensor of all columns");
  }
  if (!gradients != !update)
    fail("manifest: $.functions: expected both ", kGradientsName, " and ",
         kUpdateName, ", or neither");
  if (!gradients)
    return;
  expected = state;
  expected.insert(expected.begin(), device);
  expected.insert(expected.end(), rows.begin(), rows.end());
  checker.expectValues(
      *gradients, "args", gradients->arguments, expected, isSame,
      std::string("a device, the handles and ids of ") + kWaitName +
          " and a gradient for each of its other results");
  Values handles = filter(gradients->results, isHandle);
  expected.assign(numWeighted(manifest),
                  makeValue(ValueKind::Tensor, "f32", {-1}));
  expected.insert(expected.end(), handles.begin(), handles.end());
  checker.expectValues(*gradients, "results", gradients->results, expected,
                       isSame,
                       "the gradients of the sample weights of each input that "
                       "has some, then handles");
  expected = handles;
  expected.insert(expected.begin(), device);
  expected.push_back(makeValue(ValueKind::Scalar, "f32"));
  expected.push_back(makeValue(ValueKind::Scalar, "i64"));
  checker.expectValues(*update, "args", update->arguments, expected, isSame,
                       std::string("a device, the handles of ") +
                           kGradientsName + ", the learning rate and the step");
}

/// The arguments of both functions of an update that the reference has, too.
Values updateArguments(const Manifest &manifest, const FunctionSpec &update) {
  Values arguments;
  auto add = [&](const FunctionSpec &function) {
    for (const ValueSpec &value : function.arguments)
      if (value.kind != ValueKind::Device && !isState(value))
        arguments.push_back(value);
  };
  if (const FunctionSpec *gradients = find(manifest.functions, kGradientsName))
    add(*gradients);
  add(update);
  return arguments;
}

/// The tensors of the jagged arguments, which the reference takes for handles.
Values jaggedParts(const Values &arguments) {
  Values parts;
  for (const ValueSpec &value : arguments) {
    if (value.kind != ValueKind::Jagged)
      continue;
    parts.push_back(makeValue(ValueKind::Tensor, value.type, {-1}));
    parts.push_back(makeValue(ValueKind::Tensor, "i64", {-1}));
    if (value.weighted)
      parts.push_back(makeValue(ValueKind::Tensor, "f32", {-1}));
  }
  return parts;
}

/// The tables that a function of the reference takes: weights, and with the
/// update the states of trained ones. An update takes frozen tables too where
/// the gradients of sample weights depend on them. A function that makes
/// inputs of exchanges of its tensors reads tables that only its own
/// arguments, `listed`, tell.
Values tableArguments(const Manifest &manifest, const Values &jagged,
                      const Values &listed, bool isUpdate) {
  std::set<int32_t> tables;
  if (!isUpdate)
    for (const ValueSpec &value : listed)
      tables.insert(value.table);
  for (const ValueSpec &value : jagged)
    if (value.exchange)
      for (const ExchangeLookup &lookup :
           manifest.exchanges[static_cast<size_t>(*value.exchange)].lookups)
        if (!isUpdate || lookup.weighted ||
            manifest.tables[static_cast<size_t>(lookup.table)].trained())
          tables.insert(lookup.table);
  Values arguments;
  for (int32_t table : tables) {
    const TableSpec &spec = manifest.tables[static_cast<size_t>(table)];
    int32_t states =
        isUpdate && spec.trained() ? spec.visibleStates().count() : 0;
    arguments.push_back(makeValue(ValueKind::Weights, ""));
    arguments.back().table = table;
    for (int32_t i = 0; i < states; ++i) {
      arguments.push_back(makeValue(ValueKind::State, ""));
      arguments.back().table = table;
      arguments.back().state = i;
    }
  }
  return arguments;
}

/// Types and shapes are checked for each by itself.
bool isSameTable(const ValueSpec &a, const ValueSpec &b) {
  return a.kind == b.kind && a.table == b.table && a.state == b.state;
}

void checkReference(const Manifest &manifest, const FunctionSpec &function,
                    const FunctionChecker &checker) {
  const FunctionSpec *other = find(manifest.functions, function.name);
  const FunctionSpec *start = find(manifest.functions, kStartName);
  if (!other)
    return;
  bool isWhole = filter(other->arguments, isHandle).empty() &&
                 filter(other->results, isHandle).empty();
  bool isUpdate = function.name == kUpdateName && start;
  if (!isWhole && !isUpdate)
    return;
  Values expected;
  if (isUpdate) {
    expected = jaggedParts(start->arguments);
    Values both = updateArguments(manifest, *other);
    expected.insert(expected.end(), both.begin(), both.end());
  } else {
    expected = filter(other->arguments, [](const ValueSpec &value) {
      return value.kind != ValueKind::Device;
    });
  }
  Values plain = filter(function.arguments,
                        [](const ValueSpec &value) { return !isTable(value); });
  checker.expectValues(function, "args", plain, expected, isSame,
                       "those of $.functions." + function.name +
                           (isUpdate ? ", with the ids of all inputs" : "") +
                           ", then tables");
  Values tables = filter(function.arguments, isTable);
  checker.expectValues(
      function, "args", tables,
      tableArguments(manifest, isUpdate ? start->arguments : other->arguments,
                     tables, isUpdate),
      isSameTable,
      isUpdate ? "weights and states of each trained table, and weights of "
                 "frozen ones with sample weights, at the end"
               : "the weights of each table that is looked up at the end");
  if (isWhole)
    checker.expectValues(function, "results", function.results, other->results,
                         isSame, "those of $.functions." + function.name);
}

} // namespace

void checkFunctions(const Manifest &manifest) {
  FunctionChecker checker(manifest, "$.functions");
  for (const FunctionSpec &function : manifest.functions)
    checker.checkValues(function, /*isReference=*/false);
  checkSteps(manifest, checker);
  if (!manifest.reference)
    return;
  FunctionChecker reference(manifest, "$.reference.functions");
  for (const FunctionSpec &function : manifest.reference->functions) {
    reference.checkValues(function, /*isReference=*/true);
    checkReference(manifest, function, reference);
  }
}

} // namespace neuroshard
