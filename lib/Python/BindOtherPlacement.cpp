//===- BindOtherPlacement.cpp - Prices of other placements for Python -----===//

#include "Bindings.h"
#include "Requests.h"

#include "neuroshard/Planner/OtherPlacement.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>

namespace nb = nanobind;
using namespace neuroshard;
using namespace neuroshard::python;

namespace {

/// With all that it asks.
class OwnedPlacements {
public:
  OwnedPlacements(std::shared_ptr<ShardingProblem> given,
                  const ShardingPlan &plan, CostModelHandle handle,
                  std::string_view options)
      : problem(std::move(given)), model(std::move(handle)) {
    ObjectiveOptions objective = readOptions(options).objective;
    requireServing(*problem, model, objective);
    requireValid(*problem, plan);
    prices = std::make_unique<OtherPlacements>(*problem, plan, *model.model,
                                               objective);
    model.rethrow();
  }

  double costMs() const { return prices->costMs(); }

  std::tuple<std::optional<double>, int, std::string>
  whole(std::string_view table) const {
    for (size_t i = 0; i < problem->tables.size(); ++i)
      if (problem->tables[i].name == table) {
        OtherPlacement other = prices->whole(static_cast<int>(i));
        model.rethrow();
        return {other.costMs, other.device, std::move(other.text)};
      }
    throw nb::key_error(std::string(table).c_str());
  }

private:
  std::shared_ptr<ShardingProblem> problem;
  CostModelHandle model;
  std::unique_ptr<const OtherPlacements> prices;
};

} // namespace

void python::bindOtherPlacement(nb::module_ &module) {
  nb::class_<OwnedPlacements>(module, "OtherPlacements",
                              "Prices a plan with tables placed otherwise.")
      .def(nb::init<std::shared_ptr<ShardingProblem>, const ShardingPlan &,
                    CostModelHandle, std::string_view>(),
           nb::arg("problem"), nb::arg("plan"), nb::arg("model"),
           nb::arg("options"))
      .def_prop_ro("cost_ms", &OwnedPlacements::costMs,
                   "The cost of the plan as it is.")
      .def("whole", &OwnedPlacements::whole, nb::arg("table"),
           "The table whole on the device where a step is then shortest, and "
           "all else as it is; a table that is whole now on another device. "
           "Its cost, None if there is no such plan; the device, or -1; a "
           "sentence that compares it or says why there is none.");
}
