//===- Oracle.cpp - One step of a model, naively --------------------------===//
//
// Loops over bags and rows in the order of the input.
//
//===----------------------------------------------------------------------===//

#include "Oracle.h"
#include "NaiveFormats.h"

#include <cmath>
#include <functional>
#include <map>

namespace neuroshard::test {

float roundTo(Element type, float value) {
  float stored = 0;
  storeElement(type, &stored, 0, value);
  return loadElement(type, &stored, 0);
}

namespace {

bool counts(const Lookup &lookup, int64_t id) {
  return lookup.pooling == Pool::None || id != lookup.padding;
}

float weightOf(const Lookup &lookup, const Batch &batch, size_t bag, size_t j) {
  return lookup.weighted
             ? batch.weights[static_cast<size_t>(lookup.feature)][bag][j]
             : 1.0f;
}

float countOf(const Lookup &lookup, const std::vector<int64_t> &bag) {
  float count = 0;
  for (int64_t id : bag)
    count += counts(lookup, id);
  return count;
}

/// Rounds rows as they travel.
void roundRows(WireFormat format, std::vector<float> &rows, int64_t dim) {
  for (size_t i = 0; i < rows.size(); i += static_cast<size_t>(dim))
    roundNaively(format, rows.data() + i, dim);
}

/// Calls function(bag, position, id, row of the result).
void forIds(
    const Lookup &lookup, const Batch &batch,
    const std::function<void(size_t, size_t, int64_t, int64_t)> &function) {
  int64_t unpooledRow = 0;
  for (size_t b = 0; b < static_cast<size_t>(batch.size); ++b) {
    const auto &bag = batch.ids[static_cast<size_t>(lookup.feature)][b];
    for (size_t j = 0; j < bag.size(); ++j) {
      int64_t row = lookup.pooling == Pool::None ? unpooledRow++
                                                 : static_cast<int64_t>(b);
      if (counts(lookup, bag[j]))
        function(b, j, bag[j], row);
    }
  }
}

} // namespace

Oracle::Oracle(Model oracleModel, std::vector<int64_t> groups)
    : model(std::move(oracleModel)), columnGroups(std::move(groups)) {
  for (const Table &table : model.tables) {
    tables.emplace_back(static_cast<size_t>(table.rows * table.dim));
    bool rowwise = model.optimizer == Optimizer::RowwiseAdagrad;
    int64_t width =
        rowwise ? static_cast<int64_t>(columnGroups.size()) : table.dim;
    for (auto &state : states)
      state.emplace_back(static_cast<size_t>(table.rows * width),
                         model.initialAccumulator);
  }
}

int64_t Oracle::resultRows(size_t exchange, size_t lookup,
                           const std::vector<Batch> &batches) const {
  const Lookup &spec = model.exchanges[exchange].lookups[lookup];
  if (spec.pooling != Pool::None)
    return batches[exchange].size;
  int64_t rows = 0;
  for (const auto &bag :
       batches[exchange].ids[static_cast<size_t>(spec.feature)])
    rows += static_cast<int64_t>(bag.size());
  return rows;
}

StepResult Oracle::forward(const std::vector<Batch> &batches) const {
  StepResult step;
  for (size_t x = 0; x < batches.size(); ++x) {
    Values values;
    const auto &lookups = model.exchanges[x].lookups;
    for (size_t k = 0; k < lookups.size(); ++k) {
      const Lookup &lookup = lookups[k];
      int64_t dim = model.tables[static_cast<size_t>(lookup.table)].dim;
      std::vector<float> result(
          static_cast<size_t>(resultRows(x, k, batches) * dim));
      forIds(lookup, batches[x],
             [&](size_t b, size_t j, int64_t id, int64_t r) {
               float weight = weightOf(lookup, batches[x], b, j);
               for (int64_t c = 0; c < dim; ++c)
                 result[static_cast<size_t>(r * dim + c)] +=
                     weight * tables[static_cast<size_t>(lookup.table)]
                                    [static_cast<size_t>(id * dim + c)];
             });
      roundRows(model.wire.results, result, dim);
      for (size_t i = 0; i < result.size(); ++i) {
        if (lookup.pooling == Pool::Mean) {
          float count = countOf(
              lookup, batches[x].ids[static_cast<size_t>(lookup.feature)]
                                    [i / static_cast<size_t>(dim)]);
          result[i] = count > 0 ? result[i] / count : 0;
        }
        result[i] = roundTo(lookup.result, result[i]);
      }
      values.push_back(std::move(result));
    }
    step.results.push_back(std::move(values));
  }
  return step;
}

std::vector<Values>
Oracle::magnitudes(const std::vector<Batch> &batches) const {
  Oracle absolute = *this;
  for (auto &table : absolute.tables)
    for (float &value : table)
      value = std::fabs(value);
  for (Exchange &exchange : absolute.model.exchanges)
    for (Lookup &lookup : exchange.lookups)
      lookup.result = Element::F32;
  std::vector<Batch> positive = batches;
  for (Batch &batch : positive)
    for (auto &feature : batch.weights)
      for (auto &bag : feature)
        for (float &weight : bag)
          weight = std::fabs(weight);
  return absolute.forward(positive).results;
}

float Oracle::summed(const std::vector<Term> &terms, int64_t column) const {
  float sum = 0;
  for (const Term &term : terms)
    sum += term.weight * term.gradient[column];
  return sum;
}

void Oracle::updateRow(int table, int64_t row, const std::vector<Term> &terms,
                       float stepSize) {
  int64_t dim = model.tables[static_cast<size_t>(table)].dim;
  Element type = model.tables[static_cast<size_t>(table)].type;
  auto &weights = tables[static_cast<size_t>(table)];
  bool rowwise = model.optimizer == Optimizer::RowwiseAdagrad;
  for (size_t group = 0; group < columnGroups.size(); ++group) {
    int64_t begin = columnGroups[group];
    int64_t end = group + 1 < columnGroups.size()
                      ? std::min(columnGroups[group + 1], dim)
                      : dim;
    if (begin >= end)
      continue;
    float norm = 0;
    for (int64_t c = begin; c < end; ++c)
      norm += summed(terms, c) * summed(terms, c);
    float mean = norm / static_cast<float>(end - begin);
    if (rowwise)
      mean = states[0][static_cast<size_t>(table)]
                   [static_cast<size_t>(row) * columnGroups.size() + group] +=
          mean;
    for (int64_t c = begin; c < end; ++c) {
      size_t at = static_cast<size_t>(row * dim + c);
      stepElement(
          model.optimizer, stepSize, summed(terms, c), mean, weights[at],
          rowwise ? nullptr : &states[0][static_cast<size_t>(table)][at],
          rowwise ? nullptr : &states[1][static_cast<size_t>(table)][at]);
      weights[at] = roundTo(type, weights[at]);
    }
  }
}

StepResult Oracle::train(const std::vector<Batch> &batches,
                         const std::vector<Values> &gradients,
                         float learningRate, int64_t step) {
  StepResult result = forward(batches);
  // Gradients per row of each result as the runtime uses them.
  std::vector<Values> scaled = gradients;
  // (table, row) -> terms in the order exchange, lookup, bag, position.
  std::map<std::pair<int, int64_t>, std::vector<Term>> terms;
  for (size_t x = 0; x < batches.size(); ++x) {
    const Exchange &exchange = model.exchanges[x];
    auto weightGradient = batches[x].weights;
    for (auto &feature : weightGradient)
      for (auto &bag : feature)
        std::fill(bag.begin(), bag.end(), 0.0f);
    for (size_t k = 0; k < exchange.lookups.size(); ++k) {
      const Lookup &lookup = exchange.lookups[k];
      int64_t dim = model.tables[static_cast<size_t>(lookup.table)].dim;
      std::vector<float> &rows = scaled[x][k];
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i] = roundTo(lookup.result, rows[i]);
        if (lookup.pooling == Pool::Mean) {
          float count = countOf(
              lookup, batches[x].ids[static_cast<size_t>(lookup.feature)]
                                    [i / static_cast<size_t>(dim)]);
          rows[i] = count > 0 ? rows[i] / count : rows[i];
        }
      }
      roundRows(model.wire.gradients, rows, dim);
      forIds(lookup, batches[x],
             [&](size_t b, size_t j, int64_t id, int64_t r) {
               const float *gradient = rows.data() + r * dim;
               if (id != lookup.padding &&
                   !model.tables[static_cast<size_t>(lookup.table)].frozen)
                 terms[{lookup.table, id}].push_back(
                     {weightOf(lookup, batches[x], b, j), gradient});
               if (!lookup.weighted)
                 return;
               float dot = 0;
               for (int64_t c = 0; c < dim; ++c)
                 dot += tables[static_cast<size_t>(lookup.table)]
                              [static_cast<size_t>(id * dim + c)] *
                        gradient[c];
               weightGradient[static_cast<size_t>(lookup.feature)][b][j] += dot;
             });
    }
    result.weightGradients.push_back(std::move(weightGradient));
  }
  float stepSize = learningRate;
  if (model.optimizer == Optimizer::Adam)
    stepSize = static_cast<float>(
        static_cast<double>(learningRate) *
        std::sqrt(1 - std::pow(static_cast<double>(kBeta2),
                               static_cast<double>(step))) /
        (1 - std::pow(static_cast<double>(kBeta1), static_cast<double>(step))));
  for (const auto &[key, list] : terms)
    updateRow(key.first, key.second, list, stepSize);
  return result;
}

} // namespace neuroshard::test
