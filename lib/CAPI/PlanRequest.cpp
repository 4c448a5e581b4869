//===- PlanRequest.cpp - What a C caller asks of the planner --------------===//

#include "PlanRequest.h"

#include "neuroshard/Serialization/JsonReader.h"

#include "neuroshard/CostModel/PlacementPolicy.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Serialization/Json.h"

#include <cmath>
#include <type_traits>

using namespace neuroshard;
using namespace neuroshard::capi;
using namespace neuroshard::json;

namespace {

constexpr double kMaxMs = 1e11, kMaxHorizon = 1e15, kMaxSeconds = 1e9,
                 kMaxFactor = 1e6;
constexpr int kMaxThreads = 1024, kMaxCount = 1000000;

/// The options that are no part of SearchOptions.
struct Texts {
  std::string costModel{kDefaultCostModel};
  std::string policy;
  std::string target;
  std::string topology;
};

/// Reads one object's fields into a request, each with its range.
class OptionsReader {
public:
  OptionsReader(Reader &reader, SearchOptions &options, Texts &texts)
      : reader(reader), options(options), texts(texts) {}

  void read(const Json &value, const Path &path);

private:
  void readObjective(const Json &value, const Path &path);
  void readPublished(const Json &value, const Path &path);
  void readWarmStart(const Json &value, const Path &path);

  template <typename T>
  void between(Object &object, const char *key, T &out,
               std::type_identity_t<T> low, std::type_identity_t<T> high) {
    T value = out;
    if (!object.optional(key, value))
      return;
    if (value >= low && value <= high) {
      out = value;
      return;
    }
    auto text = [](T number) { return Json(number).dump(); };
    std::string message = "expected a number in [";
    message.append(text(low)).append(", ").append(text(high));
    message.append("], got: ").append(text(value));
    reader.error(Path(object.path, key), std::move(message));
  }

  Reader &reader;
  SearchOptions &options;
  Texts &texts;
};

/// The errors of an option's value, which are at the option.
template <typename T>
tl::unexpected<Diagnostics> atOption(std::string_view name,
                                     const Expected<T> &failed) {
  Diagnostics errors = failed.error();
  for (Diagnostic &error : errors) {
    std::string place = "options.";
    place.append(name);
    if (!error.where.empty() && error.where != name)
      place.append(": ").append(error.where);
    error.where = std::move(place);
  }
  return tl::unexpected(std::move(errors));
}

std::string algorithmNames() {
  std::string names;
  for (Algorithm algorithm : allAlgorithms())
    names.append(names.empty() ? "" : ", ").append(toString(algorithm));
  return names;
}

void OptionsReader::read(const Json &value, const Path &path) {
  Object object(reader, value, path);
  object.name("algorithm", options.algorithm, parseAlgorithm,
              algorithmNames().c_str());
  object.optional("cost_model", texts.costModel);
  object.optional("policy", texts.policy);
  object.optional("target", texts.target);
  object.optional("topology", texts.topology);
  object.optional("seed", options.seed);
  between(object, "threads", options.threads, 0, kMaxThreads);
  between(object, "evaluation_budget", options.evaluationBudget, 0,
          int64_t(1) << 62);
  between(object, "policy_samples", options.policySamples, 0, kMaxCount);
  if (const Json *deadline = object.find("deadline_s");
      deadline && !deadline->is_null())
    between(object, "deadline_s", options.deadlineSeconds.emplace(0.0), 0,
            kMaxSeconds);
  if (const Json *objective = object.find("objective"))
    readObjective(*objective, Path(path, "objective"));
  if (const Json *published = object.find("published"))
    readPublished(*published, Path(path, "published"));
  if (const Json *warmStart = object.find("warm_start");
      warmStart && !warmStart->is_null())
    readWarmStart(*warmStart, Path(path, "warm_start"));
}

void OptionsReader::readObjective(const Json &value, const Path &path) {
  ObjectiveOptions &objective = options.objective;
  if (value.is_string()) {
    auto kind = parseObjectiveKind(value.get_ref<const std::string &>());
    if (!kind)
      return reader.error(path, "expected step or published");
    objective.kind = *kind;
    return;
  }
  Object object(reader, value, path);
  object.name("kind", objective.kind, parseObjectiveKind, "step or published");
  between(object, "dense_bottom_ms", objective.denseBottomMs, 0, kMaxMs);
  between(object, "dense_rest_ms", objective.denseRestMs, 0, kMaxMs);
  between(object, "pipeline_depth", objective.pipelineDepth, 1, kMaxCount);
}

void OptionsReader::readPublished(const Json &value, const Path &path) {
  PublishedSettings &settings = options.published;
  if (options.algorithm != Algorithm::Published)
    reader.error(path, "only the algorithm 'published' has these settings");
  Object object(reader, value, path);
  between(object, "candidates", settings.candidates, 1, kMaxCount);
  between(object, "beam_width", settings.beamWidth, 1, kMaxCount);
  between(object, "depth", settings.depth, 0, kMaxCount);
  between(object, "grid_points", settings.gridPoints, 1, kMaxCount);
  between(object, "grid_begin", settings.gridBegin, 0, kMaxFactor);
  between(object, "grid_end", settings.gridEnd, settings.gridBegin, kMaxFactor);
}

void OptionsReader::readWarmStart(const Json &value, const Path &path) {
  Object object(reader, value, path);
  WarmStart warmStart;
  between(object, "horizon_steps", warmStart.horizonSteps, 1, kMaxHorizon);
  between(object, "tolerance", warmStart.tolerance, 0, 1);
  const Json *previous = object.findRequired("previous");
  if (!previous)
    return;
  Expected<ShardingPlan> plan = parsePlan(previous->dump());
  if (!plan) {
    for (const Diagnostic &error : plan.error())
      reader.error(Path(path, "previous"), error.str());
    return;
  }
  warmStart.previous = *std::move(plan);
  options.warmStart = std::move(warmStart);
}

Expected<void> readOptions(std::string_view text, SearchOptions &options,
                           Texts &texts) {
  if (text.empty())
    return {};
  Expected<Json> value = json::parse(text);
  if (!value)
    return failure("options", toString(value.error()));
  Diagnostics errors;
  Reader reader(errors);
  Path root;
  OptionsReader(reader, options, texts).read(*value, Path(root, "options"));
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return {};
}

/// The options that change the problem.
Expected<void> changeProblem(const Texts &texts, ShardingProblem &problem) {
  if (!texts.topology.empty()) {
    Expected<Topology> topology = parseTopology(texts.topology);
    if (!topology)
      return atOption("topology", topology);
    if (!problem.topology.devices.empty() && problem.topology != *topology)
      return failure("options.topology", "the workload has another topology");
    problem.topology = *std::move(topology);
  }
  if (problem.topology.devices.empty())
    return failure("topology", "the workload has none; name one with the "
                               "option \"topology\", such as \"8xH200\"");
  if (texts.target.empty())
    return {};
  auto target = parseTarget(texts.target);
  if (!target)
    return failure("options.target", "expected native or torchrec-1.9");
  problem.target = *target;
  return {};
}

/// Only algorithm dreamshard has a policy.
Expected<void> readPolicy(const Texts &texts, PlanRequest &request) {
  SearchOptions &options = request.options;
  if (options.algorithm != Algorithm::DreamShard) {
    if (!texts.policy.empty() || options.policySamples != 0)
      return failure("options.policy",
                     "only the algorithm 'dreamshard' has a policy");
    return {};
  }
  Expected<std::unique_ptr<PlacementPolicy>> policy =
      readPlacementPolicy(texts.policy);
  if (!policy)
    return atOption("policy", policy);
  request.policy = *std::move(policy);
  options.policy = request.policy.get();
  return {};
}

} // namespace

Expected<PlanRequest> capi::readRequest(std::string_view workloadJson,
                                        std::string_view optionsJson) {
  PlanRequest request;
  Texts texts;
  Expected<ShardingProblem> problem = parseWorkload(workloadJson);
  if (!problem)
    return tl::unexpected(problem.error());
  request.problem = *std::move(problem);
  if (auto read = readOptions(optionsJson, request.options, texts); !read)
    return tl::unexpected(read.error());
  if (auto changed = changeProblem(texts, request.problem); !changed)
    return tl::unexpected(changed.error());
  if (auto read = readPolicy(texts, request); !read)
    return tl::unexpected(read.error());
  Expected<std::unique_ptr<CostModel>> model =
      makeCostModel(texts.costModel, request.problem.topology);
  if (!model)
    return atOption("cost_model", model);
  request.model = *std::move(model);
  Diagnostics errors =
      checkObjective(*request.model, request.options.objective);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return request;
}
