//===- BindSearch.cpp - The search for Python -----------------------------===//

#include "Bindings.h"
#include "CostModelHandle.h"
#include "Errors.h"
#include "Results.h"

#include "neuroshard/CostModel/PlacementPolicy.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Planner/TerminalProgress.h"
#include "neuroshard/Planner/Verify.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <functional>
#include <optional>

namespace nb = nanobind;
using namespace neuroshard;
using namespace neuroshard::python;

namespace {

/// Options that own what they point to.
struct PlanOptions : SearchOptions {
  std::shared_ptr<const PlacementPolicy> ownPolicy;
};

/// Keeps the interpreter responsive while the search runs without the GIL:
/// Ctrl-C, progress, the end after a user's model failed.
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

nb::dict toPython(const ShardingProblem &problem, const CostModelHandle &model,
                  SearchResult &result) {
  nb::dict answer;
  answer["remarks"] =
      nb::cast(remarksOnPlan(problem, result.plan, *model.model));
  answer["breakdown"] = python::toPython(result.breakdown);
  answer["memory"] = python::toPython(result.memory);
  answer["lower_bound_ms"] = result.lowerBoundMs;
  answer["explanation"] = nb::cast(result.explanation);
  answer["tried"] = nb::cast(result.tried);
  answer["stop_reason"] = result.stopReason;
  answer["evaluations"] = result.evaluations;
  answer["seconds"] = result.seconds;
  answer["migration"] = result.migration
                            ? nb::object(python::toPython(*result.migration))
                            : nb::object(nb::none());
  answer["plan"] =
      nb::cast(std::make_shared<ShardingPlan>(std::move(result.plan)));
  return answer;
}

/// Whether the model serves the objective. Python has checked the numbers.
void checkServes(const CostModelHandle &model,
                 const ObjectiveOptions &objective) {
  Diagnostics errors = checkObjective(*model.model, objective);
  if (!errors.empty())
    raise("CostModelError", toString(errors));
}

nb::dict runSearch(const std::shared_ptr<ShardingProblem> &problem,
                   const CostModelHandle &model, PlanOptions options,
                   nb::object report) {
  checkServes(model, options.objective);
  Watch watch(model, std::move(report));
  options.progress = [&](const SearchProgress &progress) {
    return watch(progress);
  };
  tl::expected<SearchResult, Diagnosis> result = [&] {
    nb::gil_scoped_release released;
    return search(*problem, *model.model, options);
  }();
  watch.rethrow();
  if (!result)
    raise(result.error());
  return toPython(*problem, model, *result);
}

nb::dict runEvaluate(const ShardingProblem &problem, const ShardingPlan &plan,
                     const CostModelHandle &model, const PlanOptions &options) {
  checkServes(model, options.objective);
  Diagnostics errors = verify(plan, problem);
  if (!errors.empty())
    raise("InvalidPlan", python::toPython(errors));
  CostBreakdown breakdown =
      evaluate(problem, plan, *model.model, options.objective);
  model.rethrow();
  return python::toPython(breakdown);
}

/// What search() answers, for a plan that was not searched.
nb::dict runInspect(const ShardingProblem &problem, const ShardingPlan &plan,
                    const CostModelHandle &model, const PlanOptions &options) {
  checkServes(model, options.objective);
  Diagnostics errors = verify(plan, problem);
  if (!errors.empty())
    raise("InvalidPlan", python::toPython(errors));
  SearchResult result;
  result.plan = plan;
  {
    nb::gil_scoped_release released;
    result.breakdown = evaluate(problem, plan, *model.model, options.objective);
    result.memory = planMemory(problem, plan.shards);
    result.lowerBoundMs =
        lowerBoundMs(problem, *model.model, options.objective);
  }
  result.stopReason = "the plan was given";
  result.evaluations = 1;
  nb::dict answer = toPython(problem, model, result);
  model.rethrow();
  return answer;
}

template <typename Enum>
void setEnum(Enum &field, std::optional<Enum> value, const char *what,
             const std::string &expected, std::string_view got) {
  if (!value) {
    std::string message = what;
    message.append(": expected ").append(expected).append(", got: '");
    message.append(got).append("'");
    throw nb::value_error(message.c_str());
  }
  field = *value;
}

std::string algorithmNames() {
  std::string names;
  for (Algorithm algorithm : allAlgorithms())
    names.append(names.empty() ? "" : ", ").append(toString(algorithm));
  return names;
}

void bindOptions(nb::module_ &module) {
  auto options = nb::class_<PlanOptions>(module, "SearchOptions");
  options.def(nb::init<>())
      .def_prop_rw(
          "algorithm",
          [](const PlanOptions &o) { return toString(o.algorithm); },
          [](PlanOptions &o, std::string_view name) {
            setEnum(o.algorithm, parseAlgorithm(name), "algorithm",
                    algorithmNames(), name);
          })
      .def_prop_rw(
          "objective",
          [](const PlanOptions &o) { return toString(o.objective.kind); },
          [](PlanOptions &o, std::string_view name) {
            setEnum(o.objective.kind, parseObjectiveKind(name), "objective",
                    "published, step", name);
          })
      .def_rw("seed", &PlanOptions::seed)
      .def_rw("threads", &PlanOptions::threads)
      .def_rw("deadline_s", &PlanOptions::deadlineSeconds, nb::arg().none())
      .def_rw("evaluation_budget", &PlanOptions::evaluationBudget)
      .def(
          "set_dense",
          [](PlanOptions &o, double bottomMs, double restMs, int depth) {
            o.objective.denseBottomMs = bottomMs;
            o.objective.denseRestMs = restMs;
            o.objective.pipelineDepth = depth;
          },
          nb::arg("bottom_ms"), nb::arg("rest_ms"), nb::arg("pipeline_depth"))
      .def(
          "set_published",
          [](PlanOptions &o, int candidates, int beamWidth, int depth,
             int gridPoints, double gridBegin, double gridEnd) {
            o.published = {candidates, beamWidth, depth,
                           gridPoints, gridBegin, gridEnd};
          },
          nb::arg("candidates"), nb::arg("beam_width"), nb::arg("depth"),
          nb::arg("grid_points"), nb::arg("grid_begin"), nb::arg("grid_end"))
      .def(
          "set_policy",
          [](PlanOptions &o, const std::string &path, int samples) {
            o.ownPolicy =
                valueOrRaise(readPlacementPolicy(path), "UnknownPolicy");
            o.policy = o.ownPolicy.get();
            o.policySamples = samples;
          },
          nb::arg("path"), nb::arg("samples"))
      .def(
          "set_warm_start",
          [](PlanOptions &o, const ShardingPlan &previous, double horizonSteps,
             double tolerance) {
            o.warmStart = WarmStart{previous, horizonSteps, tolerance};
          },
          nb::arg("previous"), nb::arg("horizon_steps"), nb::arg("tolerance"));
}

} // namespace

void python::bindSearch(nb::module_ &module) {
  bindOptions(module);
  module.def("search", &runSearch, nb::arg("problem"), nb::arg("model"),
             nb::arg("options"), nb::arg("report"),
             nb::sig("def search(problem: Problem, model: Model, options: "
                     "SearchOptions, report: object) -> dict[str, typing.Any]"),
             "report(seconds, share, best_cost_ms, phase) is called several "
             "times a second, and ends the search by returning False; in its "
             "place True shows a line on a terminal, False nothing.");
  module.def("evaluate", &runEvaluate, nb::arg("problem"), nb::arg("plan"),
             nb::arg("model"), nb::arg("options"),
             nb::sig("def evaluate(problem: Problem, plan: Plan, model: Model, "
                     "options: SearchOptions) -> dict[str, typing.Any]"));
  module.def("inspect", &runInspect, nb::arg("problem"), nb::arg("plan"),
             nb::arg("model"), nb::arg("options"),
             nb::sig("def inspect(problem: Problem, plan: Plan, model: Model, "
                     "options: SearchOptions) -> dict[str, typing.Any]"));
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
