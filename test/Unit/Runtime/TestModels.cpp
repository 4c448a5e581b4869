//===- TestModels.cpp - The model, plans and data of the tests ------------===//
//
// Draws plans, batches and gradients.
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"

#include <algorithm>
#include <cmath>

namespace neuroshard::test {

Model makeModel(Optimizer optimizer) {
  Model model;
  model.optimizer = optimizer;
  model.tables = {{"user", 37, 10, Element::F32},
                  {"item", 23, 8, Element::F16},
                  {"shop", 11, 5, Element::BF16},
                  {"word", 64, 12, Element::F32}};
  Exchange first{8, true, 5, {}};
  first.lookups = {{0, 0, Pool::Sum, true, {}, Element::F32},
                   {1, 1, Pool::Mean, false, 3, Element::F16},
                   {2, 2, Pool::None, false, {}, Element::F32},
                   {0, 3, Pool::Sum, false, 5, Element::BF16},
                   {3, 4, Pool::Mean, true, {}, Element::F32},
                   {3, 0, Pool::None, false, 2, Element::BF16},
                   {3, 0, Pool::Sum, true, 7, Element::F32}};
  Exchange second{4, false, 2, {}};
  second.lookups = {{3, 0, Pool::Sum, false, {}, Element::F32},
                    {1, 1, Pool::Sum, false, {}, Element::F32}};
  model.exchanges = {first, second};
  return model;
}

const char *name(PlanKind kind) {
  switch (kind) {
  case PlanKind::TableWise:
    return "TableWise";
  case PlanKind::Column:
    return "Column";
  case PlanKind::Row:
    return "Row";
  case PlanKind::RowColumn:
    return "RowColumn";
  case PlanKind::Replicated:
    return "Replicated";
  case PlanKind::Mixed:
    return "Mixed";
  }
  return "";
}

bool splitsRows(PlanKind kind) {
  return kind == PlanKind::Row || kind == PlanKind::RowColumn ||
         kind == PlanKind::Mixed;
}

namespace {

class PlanMaker {
public:
  PlanMaker(const Model &model, int devices) : model(model), devices(devices) {}

  void whole(int table) { add(table, 0, rows(table), 0, dim(table)); }

  void columns(int table) {
    int64_t cut = dim(table) >= 8 ? 8 : 4;
    if (dim(table) == 12) {
      add(table, 0, rows(table), 0, 4);
      add(table, 0, rows(table), 4, 8);
    } else {
      add(table, 0, rows(table), 0, cut >= dim(table) ? 4 : cut);
      cut = cut >= dim(table) ? 4 : cut;
    }
    add(table, 0, rows(table), dim(table) == 12 ? 8 : cut, dim(table));
  }

  void rowRanges(int table) {
    int64_t a = rows(table) / 5, b = rows(table) / 2;
    add(table, 0, a, 0, dim(table));
    add(table, a, b, 0, dim(table));
    add(table, b, rows(table), 0, dim(table));
  }

  /// Two row ranges, of which the second is not split like the first, and for
  /// the widest table a left column that ignores the row boundary.
  void grid(int table) {
    int64_t r = rows(table) / 3, d = dim(table);
    if (d == 12) {
      add(table, 0, rows(table), 0, 4);
      add(table, 0, r, 4, 8);
      add(table, 0, r, 8, 12);
      add(table, r, rows(table), 4, 12);
      return;
    }
    add(table, 0, r, 0, 4);
    add(table, 0, r, 4, d);
    add(table, r, rows(table), 0, d);
  }

  void replicated(int table) {
    std::vector<int> all;
    for (int device = 0; device < devices; ++device)
      all.push_back(device);
    shards.push_back({table, 0, rows(table), 0, dim(table), all});
  }

  std::vector<ShardPlace> shards;

private:
  int64_t rows(int table) const {
    return model.tables[static_cast<size_t>(table)].rows;
  }
  int64_t dim(int table) const {
    return model.tables[static_cast<size_t>(table)].dim;
  }

  /// Shards go round the devices backwards, leaving device 1 without any when
  /// there are enough others.
  void add(int table, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    int device = devices - 1 - static_cast<int>(shards.size()) % devices;
    if (devices > 2 && device == 1)
      device = 0;
    shards.push_back({table, r0, r1, c0, c1, {device}});
  }

  const Model &model;
  int devices;
};

} // namespace

std::vector<ShardPlace> makePlan(const Model &model, PlanKind kind,
                                 int devices) {
  PlanMaker maker(model, devices);
  for (int table = 0; table < static_cast<int>(model.tables.size()); ++table) {
    PlanKind own = kind;
    if (kind == PlanKind::Mixed)
      own = std::array{PlanKind::RowColumn, PlanKind::Replicated,
                       PlanKind::TableWise,
                       PlanKind::Row}[static_cast<size_t>(table)];
    switch (own) {
    case PlanKind::TableWise:
      maker.whole(table);
      break;
    case PlanKind::Column:
      maker.columns(table);
      break;
    case PlanKind::Row:
      maker.rowRanges(table);
      break;
    case PlanKind::RowColumn:
      maker.grid(table);
      break;
    case PlanKind::Replicated:
    case PlanKind::Mixed:
      maker.replicated(table);
      break;
    }
  }
  return maker.shards;
}

int64_t DataMaker::drawRow(int64_t rows) {
  auto below = [&] {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
  };
  switch (draw) {
  case Draw::Squares:
    return below() * below() / rows;
  case Draw::Uniform:
    return below();
  case Draw::Zipf:
    break;
  }
  double chance = std::uniform_real_distribution<double>(0, 1)(random);
  auto place =
      static_cast<int64_t>(std::pow(static_cast<double>(rows + 1), chance));
  return std::clamp<int64_t>(place - 1, 0, rows - 1);
}

std::vector<Batch> DataMaker::batches(std::vector<int64_t> sizes) {
  std::vector<Batch> result;
  for (size_t x = 0; x < sizes.size(); ++x) {
    const Exchange &exchange = model.exchanges[x];
    Batch batch;
    batch.size = sizes[x];
    for (int f = 0; f < exchange.numFeatures; ++f) {
      int64_t rows = INT64_MAX; // the smallest table the feature looks up
      for (const Lookup &lookup : exchange.lookups)
        if (lookup.feature == f)
          rows = std::min(rows,
                          model.tables[static_cast<size_t>(lookup.table)].rows);
      std::vector<std::vector<int64_t>> ids;
      std::vector<std::vector<float>> weights;
      for (int64_t b = 0; b < batch.size; ++b) {
        size_t length = std::array<size_t, 4>{0, 1, 2, 4}[random() % 4];
        std::vector<int64_t> bag;
        for (size_t j = 0; j < length; ++j)
          bag.push_back(drawRow(rows));
        ids.push_back(bag);
        weights.push_back(values(static_cast<int64_t>(length)));
      }
      batch.ids.push_back(std::move(ids));
      batch.weights.push_back(std::move(weights));
    }
    result.push_back(std::move(batch));
  }
  return result;
}

std::vector<float> DataMaker::values(int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(data == Data::Integers
                         ? static_cast<float>(static_cast<int>(random() % 7)) -
                               3
                         : normal(random));
  return result;
}

std::vector<Values> DataMaker::gradients(const Oracle &oracle,
                                         const std::vector<Batch> &batches) {
  std::vector<Values> result;
  for (size_t x = 0; x < batches.size(); ++x) {
    Values list;
    const auto &lookups = model.exchanges[x].lookups;
    for (size_t k = 0; k < lookups.size(); ++k) {
      // Multiples of 12, so that means over 1 to 4 ids stay integers.
      std::vector<float> gradient =
          values(oracle.resultRows(x, k, batches) *
                 model.tables[static_cast<size_t>(lookups[k].table)].dim);
      if (data == Data::Integers)
        for (float &value : gradient)
          value *= 12;
      list.push_back(std::move(gradient));
    }
    result.push_back(std::move(list));
  }
  return result;
}

void DataMaker::fillTables(Oracle &oracle, TestWorld &world) {
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const Table &table = model.tables[t];
    oracle.tables[t] = values(table.rows * table.dim);
    for (float &value : oracle.tables[t])
      value = roundTo(table.type, value);
    world.setTable(static_cast<int>(t), oracle.tables[t]);
  }
}

} // namespace neuroshard::test
