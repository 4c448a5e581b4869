//===- BindVocabulary.cpp - Model's names and constants for Python --------===//

#include "Bindings.h"

#include "neuroshard/CostModel/ComputeFeatures.h"
#include "neuroshard/Model/Constraints.h"
#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Model/Table.h"
#include "neuroshard/Model/Target.h"
#include "neuroshard/Model/Types.h"
#include "neuroshard/Model/WireType.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

namespace nb = nanobind;
using namespace neuroshard;

namespace {

/// The names of all values of an enumeration, in order: toString() knows no
/// value after the last.
template <typename Enum> nb::list namesOf() {
  nb::list names;
  for (int i = 0; toString(static_cast<Enum>(i)) != "unknown"; ++i)
    names.append(toString(static_cast<Enum>(i)));
  return names;
}

/// By optimizer: the names of the states per element, and per row.
nb::dict stateNames() {
  nb::dict names;
  for (const OptimizerProperties &optimizer : kOptimizers) {
    nb::list perElement, perRow;
    for (int i = 0; i < optimizer.states.count(); ++i)
      (i < optimizer.states.perElement ? perElement : perRow)
          .append(optimizer.stateNames[static_cast<size_t>(i)]);
    nb::list pair;
    pair.append(perElement);
    pair.append(perRow);
    names[nb::cast(optimizer.name)] = pair;
  }
  return names;
}

template <typename Enum>
nb::dict bytesOf(std::optional<Enum> (*parse)(std::string_view),
                 int64_t (*bytes)(Enum)) {
  nb::dict result;
  for (nb::handle name : namesOf<Enum>())
    result[name] = bytes(*parse(nb::cast<std::string_view>(name)));
  return result;
}

std::vector<std::string> wireTypes() {
  std::vector<std::string> names;
  for (WireType type : allWireTypes())
    names.push_back(toString(type));
  return names;
}

nb::dict vocabulary() {
  nb::dict words;
  nb::dict floats;
  for (ElementType type : kFloatTypes)
    floats[nb::cast(toString(type))] = elementBytes(type);
  words["element_bytes"] = floats;
  words["element_types"] = namesOf<ElementType>();
  words["wire_types"] = wireTypes();
  words["id_bytes"] = bytesOf(&parseIdType, &idBytes);
  words["poolings"] = namesOf<Pooling>();
  words["optimizers"] = namesOf<OptimizerKind>();
  nb::list priced;
  for (OptimizerKind kind : kPricedOptimizers)
    priced.append(toString(kind));
  words["priced_optimizers"] = priced;
  words["optimizer_states"] = stateNames();
  nb::dict norms;
  for (const OptimizerProperties &optimizer : kOptimizers)
    norms[nb::cast(optimizer.name)] = optimizer.normsPerRow;
  words["norms_per_row"] = norms;
  words["weight_decay_modes"] = namesOf<WeightDecayMode>();
  words["semantics"] = namesOf<OptimizerSemantics>();
  words["tiers"] = namesOf<Tier>();
  words["cache_policies"] = namesOf<CachePolicy>();
  words["routes"] = namesOf<Route>();
  words["kinds"] = namesOf<ShardingKind>();
  words["targets"] = namesOf<Target>();
  words["modes"] = namesOf<StepMode>();
  words["memory_models"] = namesOf<MemoryModel>();
  words["reuse_bin_upper"] = nb::cast(
      std::vector<int64_t>(kReuseBinUpper.begin(), kReuseBinUpper.end()));
  words["column_alignment"] = kColumnAlignment;
  return words;
}

} // namespace

void neuroshard::python::bindVocabulary(nb::module_ &module) {
  module.def("vocabulary", &vocabulary,
             nb::sig("def vocabulary() -> dict[str, typing.Any]"),
             "The names and constants of include/neuroshard/Model.");
  module.def(
      "row_bytes",
      [](int64_t width, const std::string &type) {
        std::optional<ElementType> known = parseElementType(type);
        if (!known)
          throw nb::value_error("unknown type of elements");
        return rowBytes(width, *known);
      },
      nb::arg("width"), nb::arg("type"),
      "Bytes of a row of `width` elements without padding: of 0, those in "
      "front of them, its scale and bias.");
}
