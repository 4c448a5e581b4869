//===- Evaluation.cpp - Held-out figures of cost models -------------------===//

#include "neuroshard/Training/Evaluation.h"

#include "neuroshard/Training/Metrics.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

using namespace neuroshard;

namespace {

using Member = double (*)(const ComputeMs &);

double forwardOf(const ComputeMs &time) { return time.forwardMs; }
double backwardOf(const ComputeMs &time) { return time.backwardMs; }
double totalOf(const ComputeMs &time) { return time.total(); }

std::vector<double> column(std::span<const ComputeMs> times, Member member) {
  std::vector<double> values;
  for (const ComputeMs &time : times)
    values.push_back(member(time));
  return values;
}

template <typename Figures> Agreement forEachTime(size_t count, Figures of) {
  return {count, of(forwardOf), of(backwardOf), of(totalOf)};
}

/// "4.25", or "-" for NaN.
std::string number(double value, int digits) {
  if (std::isnan(value))
    return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

nlohmann::ordered_json toJson(const Agreement::Figures &figures) {
  if (std::isnan(figures.error))
    return nullptr;
  return {{"error", figures.error}, {"tau", figures.tau}};
}

} // namespace

Agreement neuroshard::agreement(std::span<const ComputeMs> predicted,
                                std::span<const ComputeMs> measured) {
  return forEachTime(measured.size(), [&](Member member) {
    std::vector<double> p = column(predicted, member);
    std::vector<double> m = column(measured, member);
    return Agreement::Figures{meanRelativeError(p, m), kendallTau(p, m)};
  });
}

Agreement neuroshard::agreementOfTotals(std::span<const double> predicted,
                                        std::span<const ComputeMs> measured) {
  std::vector<double> m = column(measured, totalOf);
  Agreement result;
  result.count = measured.size();
  result.total = {meanRelativeError(predicted, m), kendallTau(predicted, m)};
  return result;
}

Agreement neuroshard::repeatAgreement(std::span<const ComputeMs> first,
                                      std::span<const ComputeMs> second) {
  return forEachTime(first.size(), [&](Member member) {
    std::vector<double> a = column(first, member);
    std::vector<double> b = column(second, member);
    return Agreement::Figures{meanRelativeDifference(a, b), kendallTau(a, b)};
  });
}

std::string neuroshard::toMarkdown(std::span<const EvaluationRow> rows) {
  std::string text = "| | sets | forward % | tau | backward % | tau | total % "
                     "| tau |\n|---|---|---|---|---|---|---|---|\n";
  for (const EvaluationRow &row : rows) {
    const Agreement &a = row.agreement;
    text += "| " + row.subject + " | " + std::to_string(a.count);
    for (const Agreement::Figures &f : {a.forward, a.backward, a.total})
      text += " | " + number(100 * f.error, 2) + " | " + number(f.tau, 4);
    text += " |\n";
  }
  return text;
}

std::string neuroshard::toJson(std::span<const EvaluationRow> rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const EvaluationRow &row : rows)
    list.push_back({{"subject", row.subject},
                    {"sets", row.agreement.count},
                    {"forward", ::toJson(row.agreement.forward)},
                    {"backward", ::toJson(row.agreement.backward)},
                    {"total", ::toJson(row.agreement.total)}});
  return list.dump(2) + "\n";
}
