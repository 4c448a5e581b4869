//===- BindSearch.cpp - The search for Python -----------------------------===//

#include "Bindings.h"
#include "CostModelHandle.h"
#include "Errors.h"
#include "Requests.h"

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Planner/Migrate.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/SearchOptionTable.h"
#include "neuroshard/Planner/TerminalProgress.h"
#include "neuroshard/Planner/Traffic.h"
#include "neuroshard/Serialization/SearchJson.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>

namespace nb = nanobind;
using namespace neuroshard;
using namespace neuroshard::python;

namespace {

/// Called during a search, which runs without the GIL: handles Ctrl-C, reports
/// progress, and ends the search once a user's model has failed.
class Watch {
public:
  /// `report`: a function; True for a line on a terminal; False for neither.
  Watch(const CostModelHandle &model, nb::object report)
      : model(model), report(std::move(report)) {
    if (this->report.is(nb::bool_(true)))
      show = terminal.emplace("planning").callback();
    silent = PyBool_Check(this->report.ptr());
  }

  /// Whether the search goes on.
  bool operator()(const SearchProgress &progress) {
    if (model.failed() || error)
      return false;
    if (show)
      show(progress);
    nb::gil_scoped_acquire gil;
    try {
      return tell(progress);
    } catch (...) {
      error = std::current_exception();
      return false;
    }
  }

  /// Raises what was raised meanwhile. The GIL must be held.
  void rethrow() const {
    if (error)
      std::rethrow_exception(error);
    model.rethrow();
  }

private:
  bool tell(const SearchProgress &progress) {
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
    if (silent)
      return true;
    nb::object answer = report(progress.seconds, progress.share,
                               progress.bestCostMs, progress.phase);
    return !answer.is(nb::bool_(false));
  }

  const CostModelHandle &model;
  nb::object report;
  bool silent = false;
  std::optional<TerminalProgress> terminal;
  std::function<bool(const SearchProgress &)> show;
  std::exception_ptr error;
};

std::string write(const ShardingProblem &problem, const CostModelHandle &model,
                  const ObjectiveOptions &objective,
                  const SearchResult &result) {
  return writeSearchResult(result,
                           remarksOnPlan(problem, result.plan, *model.model),
                           assumptionsOf(problem, objective));
}

std::string runSearch(const std::shared_ptr<ShardingProblem> &problem,
                      const CostModelHandle &model, std::string_view json,
                      nb::object report) {
  std::unique_ptr<PlacementPolicy> policy;
  SearchOptions options = readOptions(json, &policy);
  requireServing(*problem, model, options.objective);
  Watch watch(model, std::move(report));
  options.progress = [&](const SearchProgress &progress) {
    return watch(progress);
  };
  tl::expected<SearchResult, PlanningError> result = [&] {
    nb::gil_scoped_release released;
    return search(*problem, *model.model, options);
  }();
  watch.rethrow();
  if (!result)
    raise(result.error());
  return write(*problem, model, options.objective, *result);
}

std::string runEvaluate(const ShardingProblem &problem,
                        const ShardingPlan &plan, const CostModelHandle &model,
                        std::string_view json) {
  SearchOptions options = readOptions(json);
  requireServing(problem, model, options.objective);
  requireValid(problem, plan);
  CostBreakdown breakdown =
      evaluate(problem, plan, *model.model, options.objective);
  model.rethrow();
  return writeBreakdown(breakdown);
}

/// The result of search() for a given plan, without a search; with a previous
/// plan also what changing from it takes. `rules`: the problem whose rules the
/// plan must follow, of the same tables and devices; null: `problem` itself.
std::string runInspect(const ShardingProblem &problem, const ShardingPlan &plan,
                       const CostModelHandle &model, std::string_view json,
                       const ShardingProblem *rules) {
  SearchOptions options = readOptions(json);
  requireServing(problem, model, options.objective);
  requireValid(rules ? *rules : problem, plan);
  SearchResult result;
  result.plan = plan;
  {
    nb::gil_scoped_release released;
    result.breakdown = evaluate(problem, plan, *model.model, options.objective);
    result.memory = planMemory(problem, plan.shards);
    if (problem.target == Target::Native)
      result.buffers = planBuffers(problem, plan.shards);
    result.lowerBoundMs =
        lowerBoundMs(problem, *model.model, options.objective);
  }
  if (options.warmStart)
    result.migration =
        valueOrRaise(migrate(problem, options.warmStart->previous, plan,
                             *model.model, options.objective),
                     "InvalidPlan");
  result.stopReason = "the plan was given";
  result.evaluations = 1;
  std::string answer = write(problem, model, options.objective, result);
  model.rethrow();
  return answer;
}

nb::list optionTable() {
  nb::list rows;
  for (const SearchOption &option : searchOptionTable()) {
    nb::dict row;
    row["key"] = option.key;
    row["flag"] = option.flag;
    row["kind"] = option.kind == OptionKind::Text    ? "text"
                  : option.kind == OptionKind::Whole ? "whole"
                                                     : "number";
    row["default"] = option.defaultText;
    row["low"] = option.low;
    row["high"] = option.high;
    row["range"] = option.range;
    row["scope"] = option.scope == OptionScope::Published    ? "published"
                   : option.scope == OptionScope::DreamShard ? "dreamshard"
                                                             : "";
    row["help"] = helpOf(option);
    rows.append(row);
  }
  return rows;
}

} // namespace

void python::bindSearch(nb::module_ &module) {
  module.def("search", &runSearch, nb::arg("problem"), nb::arg("model"),
             nb::arg("options"), nb::arg("report"),
             "options: a JSON object, with the keys of search_options(). "
             "report(seconds, share, best_cost_ms, phase) is called several "
             "times a second, and ends the search by returning False; in its "
             "place True shows a line on a terminal, False nothing. Returns "
             "JSON, as `neuroshard plan --json` prints it.");
  module.def("evaluate", &runEvaluate, nb::arg("problem"), nb::arg("plan"),
             nb::arg("model"), nb::arg("options"));
  module.def("inspect", &runInspect, nb::arg("problem"), nb::arg("plan"),
             nb::arg("model"), nb::arg("options"),
             nb::arg("rules").none() = nb::none());
  module.def(
      "search_options", &optionTable,
      nb::sig("def search_options() -> list[dict[str, typing.Any]]"),
      "Every option of a search: key, flag, kind (text, whole or number), "
      "default, low, high, range, scope (the only algorithm that reads it), "
      "help.");
  module.def(
      "algorithms",
      [] {
        nb::list names;
        for (Algorithm algorithm : allAlgorithms())
          names.append(nb::cast(toString(algorithm)));
        return names;
      },
      nb::sig("def algorithms() -> list[str]"));
}
