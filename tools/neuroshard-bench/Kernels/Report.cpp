//===- Report.cpp - Tables and JSON of kernel speeds ----------------------===//

#include "Measure.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace neuroshard::bench {

namespace {

using nlohmann::json;

struct Aim {
  const char *shape;
  const char *against;
  double ratio;
  const char *text;
};

constexpr Aim kAims[] = {
    {"bags", kEmbeddingBag, 1.2, "forward, bags of 20"},
    {"single-ids", kEmbeddingBag, 2.0, "forward, single ids"},
    {"update-sgd", kFbgemm, 2.5, "forward + update, exact SGD"}};

double median(const Figures &figures) { return quantile(figures.wallMs, 0.5); }

/// How many times as long the other takes.
double ratioOf(const ShapeFigures &shape, const Figures &other) {
  return median(other) / median(shape.contenders.front());
}

struct AimResult {
  const Aim *aim;
  double ratio = 0;
  std::string notRun;

  bool reached() const { return notRun.empty() && ratio >= aim->ratio; }
};

AimResult judge(const Aim &aim, const std::vector<ShapeFigures> &shapes) {
  for (const ShapeFigures &shape : shapes) {
    if (shape.shape.name != aim.shape)
      continue;
    const Figures *other = shape.find(aim.against);
    if (!other->ran())
      return {&aim, 0, other->notRun};
    if (!other->agrees())
      return {&aim, 0, "the results differ"};
    return {&aim, ratioOf(shape, *other), ""};
  }
  return {&aim, 0, "its shape was not chosen"};
}

json toJson(const ShapeFigures &shape, const Figures &figures) {
  json result = {{"name", figures.name}};
  if (!figures.ran()) {
    result["not_run"] = figures.notRun;
    return result;
  }
  result["median_ms"] = median(figures);
  result["first_quartile_ms"] = quantile(figures.wallMs, 0.25);
  result["third_quartile_ms"] = quantile(figures.wallMs, 0.75);
  result["cpu_ms"] = quantile(figures.cpuMs, 0.5);
  result["runs"] = figures.wallMs.size();
  result["gb_per_s"] = shape.bytes / median(figures) * 1e-6;
  result["ratio"] = ratioOf(shape, figures);
  if (figures.difference) {
    result["largest_difference"] = *figures.difference;
    result["tolerance"] = figures.tolerance;
    result["agrees"] = figures.agrees();
  }
  return result;
}

json toJson(const ShapeFigures &figures) {
  const Shape &shape = figures.shape;
  json result = {{"name", shape.name},
                 {"tables", shape.tables},
                 {"rows", shape.rows},
                 {"dim", shape.dim},
                 {"batch", shape.batch},
                 {"pooling", shape.pooling},
                 {"zipf", shape.zipf},
                 {"element", shape.element},
                 {"mean", shape.mean},
                 {"weighted", shape.weighted},
                 {"logical_bytes", figures.bytes}};
  result["optimizer"] =
      shape.isTraining() ? json(shape.optimizer) : json(nullptr);
  for (const Figures &contender : figures.contenders)
    result["contenders"].push_back(toJson(figures, contender));
  return result;
}

void printFigures(const ShapeFigures &shape, const Figures &figures) {
  if (!figures.ran()) {
    std::printf("  %-16s not run: %s\n", figures.name.c_str(),
                figures.notRun.c_str());
    return;
  }
  std::printf("  %-16s %8.2f %8.2f - %-8.2f %8.2f %7.1f %7.2f",
              figures.name.c_str(), median(figures),
              quantile(figures.wallMs, 0.25), quantile(figures.wallMs, 0.75),
              quantile(figures.cpuMs, 0.5),
              shape.bytes / median(figures) * 1e-6, ratioOf(shape, figures));
  if (figures.difference)
    std::printf("  %.1e%s", *figures.difference,
                figures.agrees() ? "" : " DIFFERS");
  std::printf("\n");
}

} // namespace

std::string toJson(const std::vector<ShapeFigures> &shapes,
                   const MeasureOptions &options) {
  json result = {{"schema", "neuroshard.bench-kernels/1"},
                 {"threads", options.threads},
                 {"rounds", options.rounds},
                 {"shapes", json::array()},
                 {"aims", json::array()}};
  for (const ShapeFigures &shape : shapes)
    result["shapes"].push_back(toJson(shape));
  for (const Aim &aim : kAims) {
    AimResult judged = judge(aim, shapes);
    json entry = {{"name", aim.text},
                  {"shape", aim.shape},
                  {"against", aim.against},
                  {"required_ratio", aim.ratio},
                  {"reached", judged.reached()}};
    if (judged.notRun.empty())
      entry["ratio"] = judged.ratio;
    else
      entry["not_run"] = judged.notRun;
    result["aims"].push_back(std::move(entry));
  }
  return result.dump(2) + "\n";
}

void printShape(const ShapeFigures &figures) {
  const Shape &shape = figures.shape;
  std::printf(
      "%s: %lld tables x %lld rows x %lld %s, batch %lld, %lld ids "
      "each%s%s%s%s\n",
      shape.name.c_str(), static_cast<long long>(shape.tables),
      static_cast<long long>(shape.rows), static_cast<long long>(shape.dim),
      shape.element.c_str(), static_cast<long long>(shape.batch),
      static_cast<long long>(shape.pooling), shape.zipf > 0 ? ", Zipf" : "",
      shape.mean ? ", mean" : "", shape.weighted ? ", weighted" : "",
      shape.isTraining() ? ", forward + update" : "");
  std::printf("  %-16s %8s %19s %8s %7s %7s  %s\n", "", "ms", "quartiles",
              "CPU ms", "GB/s", "ratio", "difference");
  for (const Figures &contender : figures.contenders)
    printFigures(figures, contender);
  std::fflush(stdout);
}

int printAims(const std::vector<ShapeFigures> &shapes) {
  int missed = 0;
  std::printf("aims\n");
  for (const Aim &aim : kAims) {
    AimResult judged = judge(aim, shapes);
    std::printf("  %-30s >= %.1f x %-14s ", aim.text, aim.ratio, aim.against);
    if (!judged.notRun.empty()) {
      std::printf("not run: %s\n", judged.notRun.c_str());
      continue;
    }
    std::printf("%.2f  %s\n", judged.ratio,
                judged.reached() ? "reached" : "MISSED");
    missed += !judged.reached();
  }
  return missed;
}

} // namespace neuroshard::bench
