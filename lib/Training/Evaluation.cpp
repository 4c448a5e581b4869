//===- Evaluation.cpp - Tables of the accuracy of cost models -------------===//

#include "neuroshard/Training/Evaluation.h"

#include "neuroshard/Training/Metrics.h"

#include <nlohmann/json.hpp>

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

/// "4.25", or "-" for nothing.
std::string number(const std::optional<double> &value, int digits) {
  if (!value)
    return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, *value);
  return text;
}

template <typename Compare>
ComputeAgreement forEachTime(std::span<const ComputeMs> a,
                             std::span<const ComputeMs> b, Compare compare) {
  auto of = [&](Member member) {
    return compare(column(a, member), column(b, member));
  };
  return {of(forwardOf), of(backwardOf), of(totalOf)};
}

} // namespace

Agreement neuroshard::agreement(std::span<const double> predicted,
                                std::span<const double> measured) {
  return {meanRelativeError(predicted, measured),
          kendallTau(predicted, measured)};
}

Agreement neuroshard::repeatAgreement(std::span<const double> first,
                                      std::span<const double> second) {
  return {meanRelativeDifference(first, second), kendallTau(first, second)};
}

ComputeAgreement neuroshard::agreement(std::span<const ComputeMs> predicted,
                                       std::span<const ComputeMs> measured) {
  return forEachTime(predicted, measured, [](auto &&p, auto &&m) {
    return agreement(std::span<const double>(p), std::span<const double>(m));
  });
}

ComputeAgreement
neuroshard::repeatAgreement(std::span<const ComputeMs> first,
                            std::span<const ComputeMs> second) {
  return forEachTime(first, second, [](auto &&a, auto &&b) {
    return repeatAgreement(std::span<const double>(a),
                           std::span<const double>(b));
  });
}

EvaluationRow neuroshard::makeRow(std::string subject, size_t samples,
                                  const ComputeAgreement &agreement) {
  return {std::move(subject),
          samples,
          {agreement.forward, agreement.backward, agreement.total}};
}

void EvaluationTable::add(std::vector<EvaluationRow> more) {
  rows.insert(rows.end(), more.begin(), more.end());
}

EvaluationTable neuroshard::makeComputeTable() {
  return {{"forward", "backward", "total"}, {}};
}

std::string neuroshard::toMarkdown(const EvaluationTable &table) {
  std::string text = "| | samples |", rule = "|---|---:|";
  for (const std::string &name : table.columns) {
    text += " " + name + " % | tau |";
    rule += "---:|---:|";
  }
  text += "\n" + rule + "\n";
  auto addCell = [&](const std::string &cell) {
    text.append(" ").append(cell).append(" |");
  };
  for (const EvaluationRow &row : table.rows) {
    text += "|";
    addCell(row.subject);
    addCell(std::to_string(row.samples));
    for (const std::optional<Agreement> &figure : row.figures) {
      std::optional<double> error, tau;
      if (figure)
        error = 100 * figure->error, tau = figure->tau;
      addCell(number(error, 2));
      addCell(number(tau, 4));
    }
    text += "\n";
  }
  return text;
}

std::string neuroshard::toJson(const EvaluationTable &table) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const EvaluationRow &row : table.rows) {
    nlohmann::ordered_json entry = {{"subject", row.subject},
                                    {"samples", row.samples}};
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (row.figures[i])
        entry[table.columns[i]] = {{"error", row.figures[i]->error},
                                   {"tau", row.figures[i]->tau}};
    list.push_back(std::move(entry));
  }
  return list.dump(2) + "\n";
}
