//===- PlanReport.cpp - Report on predicted and measured plans ------------===//

#include "neuroshard/Collect/PlanMeasurement.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

using namespace neuroshard;
using nlohmann::json;

namespace {

double maxForwardPlusBackward(std::span<const ComputeMs> devices) {
  double forward = 0, backward = 0;
  for (const ComputeMs &device : devices) {
    forward = std::max(forward, device.forwardMs);
    backward = std::max(backward, device.backwardMs);
  }
  return forward + backward;
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin;
         end < order.size() && values[order[end]] == values[order[begin]];)
      ++end;
    for (size_t i = begin; i < end; ++i)
      result[order[i]] = 0.5 * static_cast<double>(begin + end - 1);
  }
  return result;
}

/// Plans of one task on one number of devices.
using TaskKey = std::pair<int, int>;
using Tasks = std::map<TaskKey, std::vector<const MeasuredPlan *>>;

Tasks groupByTask(std::span<const MeasuredPlan> plans) {
  Tasks tasks;
  for (const MeasuredPlan &plan : plans)
    tasks[{plan.devices, plan.task}].push_back(&plan);
  return tasks;
}

double correlate(std::span<const MeasuredPlan *const> plans) {
  std::vector<double> predicted, measured;
  for (const MeasuredPlan *plan : plans) {
    predicted.push_back(plan->predictedComputeMs());
    measured.push_back(plan->measuredComputeMs());
  }
  return rankCorrelation(predicted, measured);
}

std::string format(const char *pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string describeCorrelation(const Tasks &tasks,
                                std::span<const MeasuredPlan> plans) {
  std::vector<const MeasuredPlan *> all;
  double error = 0;
  for (const MeasuredPlan &plan : plans) {
    all.push_back(&plan);
    error +=
        std::abs(plan.predictedComputeMs() / plan.measuredComputeMs() - 1) /
        static_cast<double>(plans.size());
  }
  double withinTasks = 0;
  for (const auto &[key, group] : tasks)
    withinTasks += correlate(group) / static_cast<double>(tasks.size());
  return "Rank correlation of predicted and measured compute: " +
         format("%.3f", correlate(all)) + " over " +
         std::to_string(plans.size()) + " plans, " +
         format("%.3f", withinTasks) + " among the plans of a task (mean of " +
         std::to_string(tasks.size()) + "). Mean error " +
         format("%.1f %%", 100 * error) + ".\n";
}

/// Geometric means of an algorithm's cost over the default search's.
struct Ratio {
  double logPredicted = 0, logMeasured = 0, logMeasuredCompute = 0;
  int tasks = 0;

  void add(const MeasuredPlan &plan, const MeasuredPlan &reference) {
    logPredicted +=
        std::log(plan.predicted.costMs / reference.predicted.costMs);
    logMeasured += std::log(plan.measuredCostMs() / reference.measuredCostMs());
    logMeasuredCompute +=
        std::log(plan.measuredComputeMs() / reference.measuredComputeMs());
    ++tasks;
  }
};

std::string describeRatios(const Tasks &tasks) {
  std::map<std::pair<int, Algorithm>, Ratio> ratios;
  for (const auto &[key, group] : tasks) {
    auto reference =
        std::find_if(group.begin(), group.end(), [](const MeasuredPlan *plan) {
          return plan->algorithm == Algorithm::Default;
        });
    if (reference == group.end())
      continue;
    for (const MeasuredPlan *plan : group)
      ratios[{plan->devices, plan->algorithm}].add(*plan, **reference);
  }
  std::string text =
      "\n| devices | algorithm | tasks | predicted step | step with measured "
      "compute | measured compute |\n|---|---|---|---|---|---|\n";
  for (const auto &[key, ratio] : ratios) {
    auto mean = [&](double sum) {
      return format("%.3f", std::exp(sum / ratio.tasks));
    };
    text += "| " + std::to_string(key.first) + " | " +
            std::string(toString(key.second)) + " | " +
            std::to_string(ratio.tasks) + " | " + mean(ratio.logPredicted) +
            " | " + mean(ratio.logMeasured) + " | " +
            mean(ratio.logMeasuredCompute) + " |\n";
  }
  return text;
}

} // namespace

double MeasuredPlan::predictedComputeMs() const {
  return predicted.maxForwardMs + predicted.maxBackwardMs;
}

double MeasuredPlan::measuredComputeMs() const {
  return maxForwardPlusBackward(measured);
}

double MeasuredPlan::measuredCostMs() const {
  return predicted.costMs - predictedComputeMs() + measuredComputeMs();
}

double neuroshard::rankCorrelation(std::span<const double> a,
                                   std::span<const double> b) {
  std::vector<double> x = ranks(a), y = ranks(b);
  double mean = 0.5 * (static_cast<double>(a.size()) - 1);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

std::string neuroshard::summarise(std::span<const MeasuredPlan> plans) {
  if (plans.empty())
    return "No plan was measured.\n";
  Tasks tasks = groupByTask(plans);
  return describeCorrelation(tasks, plans) +
         "\nCosts over those of the default search, geometric mean over the "
         "tasks:\n" +
         describeRatios(tasks);
}

std::string neuroshard::toJson(std::span<const MeasuredPlan> plans,
                               const PlanMeasurementOptions &options,
                               const std::string &costModel) {
  json result = {{"schema", "neuroshard.measured_plans.v1"},
                 {"cost_model", costModel},
                 {"seed", options.seed},
                 {"threads", options.measure.threads},
                 {"plans", json::array()}};
  for (const MeasuredPlan &plan : plans) {
    json devices = json::array();
    for (size_t d = 0; d < plan.measured.size(); ++d)
      devices.push_back({{"predicted_forward_ms",
                          plan.predicted.devices[d].compute.forwardMs},
                         {"predicted_backward_ms",
                          plan.predicted.devices[d].compute.backwardMs},
                         {"forward_ms", plan.measured[d].forwardMs},
                         {"backward_ms", plan.measured[d].backwardMs}});
    result["plans"].push_back({{"task", plan.task},
                               {"devices", plan.devices},
                               {"algorithm", toString(plan.algorithm)},
                               {"predicted_cost_ms", plan.predicted.costMs},
                               {"measured_cost_ms", plan.measuredCostMs()},
                               {"per_device", devices}});
  }
  return result.dump(1) + "\n";
}
