//===- Shapes.cpp - Shapes to measure, and their ids ----------------------===//

#include "Contender.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace neuroshard::bench {

namespace {

/// More than last-level caches hold.
constexpr int64_t kBytesOfSets = int64_t{3} << 29;
constexpr int64_t kLargestSets = 64;

/// Ids whose popularity falls with a power of their rank, by the inverse of
/// the continuous distribution; ranks are spread over the rows.
class ZipfIds {
public:
  ZipfIds(int64_t rows, double exponent)
      : rows(rows), power(1 - exponent),
        last(exponent == 1 ? std::log(static_cast<double>(rows) + 1)
                           : std::pow(static_cast<double>(rows) + 1, power)) {}

  int64_t operator()(std::mt19937_64 &random) {
    double u = std::uniform_real_distribution<double>()(random);
    double rank = power == 0 ? std::exp(u * last)
                             : std::pow(1 + u * (last - 1), 1 / power);
    int64_t number =
        std::clamp<int64_t>(static_cast<int64_t>(rank) - 1, 0, rows - 1);
    // A multiplier prime to the number of rows keeps distinct ranks apart.
    return static_cast<int64_t>(static_cast<__uint128_t>(number) * 2654435761U %
                                static_cast<uint64_t>(rows));
  }

private:
  int64_t rows;
  double power, last;
};

IdSet makeIdSet(const Shape &shape, std::mt19937_64 &random) {
  IdSet set;
  std::uniform_int_distribution<int64_t> uniform(0, shape.rows - 1);
  std::uniform_real_distribution<float> weight(0.5f, 1.5f);
  ZipfIds zipf(shape.rows, shape.zipf);
  std::vector<int64_t> distinct;
  for (int64_t table = 0; table < shape.tables; ++table) {
    size_t first = set.ids.size();
    for (int64_t i = 0; i < shape.batch * shape.pooling; ++i)
      set.ids.push_back(shape.zipf > 0 ? zipf(random) : uniform(random));
    distinct.assign(set.ids.begin() + static_cast<std::ptrdiff_t>(first),
                    set.ids.end());
    std::sort(distinct.begin(), distinct.end());
    set.uniqueRows +=
        std::unique(distinct.begin(), distinct.end()) - distinct.begin();
  }
  for (int64_t bag = 0; bag <= shape.tables * shape.batch; ++bag)
    set.offsets.push_back(bag * shape.pooling);
  if (shape.weighted)
    for (size_t i = 0; i < set.ids.size(); ++i)
      set.weights.push_back(weight(random));
  return set;
}

Shape forward(std::string name, int64_t tables, int64_t rows, int64_t dim,
              int64_t batch, int64_t pooling) {
  Shape shape;
  shape.name = std::move(name);
  shape.tables = tables;
  shape.rows = rows;
  shape.dim = dim;
  shape.batch = batch;
  shape.pooling = pooling;
  return shape;
}

Shape training(const std::string &optimizer, int64_t rows) {
  std::string name = "update-";
  Shape shape = forward(name.append(optimizer), 8, rows, 64, 2048, 20);
  shape.optimizer = optimizer;
  return shape;
}

} // namespace

std::vector<IdSet> makeIdSets(const Shape &shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  int64_t bytes = shape.numIds() * shape.rowBytes();
  int64_t count = std::clamp<int64_t>(
      kBytesOfSets / std::max<int64_t>(bytes, 1), 4, kLargestSets);
  std::vector<IdSet> sets;
  for (int64_t i = 0; i < count; ++i)
    sets.push_back(makeIdSet(shape, random));
  return sets;
}

std::vector<Shape> usualShapes() {
  std::vector<Shape> shapes = {forward("bags", 8, 1000000, 64, 2048, 20),
                               forward("single-ids", 26, 100000, 128, 2048, 1),
                               training("sgd", 1000000),
                               training("adagrad", 500000),
                               training("rowwise_adagrad", 500000),
                               training("adam", 500000)};
  for (int64_t dim : {16, 32, 128, 256}) {
    std::string name = "dim-";
    shapes.push_back(forward(name.append(std::to_string(dim)), 8,
                             64000000 / dim / 2, dim, 2048, 20));
  }
  shapes.push_back(forward("pooling-1", 8, 1000000, 64, 2048, 1));
  shapes.push_back(forward("pooling-4", 8, 1000000, 64, 2048, 4));
  shapes.push_back(forward("pooling-100", 8, 1000000, 64, 2048, 100));
  shapes.push_back(forward("zipf", 8, 1000000, 64, 2048, 20));
  shapes.back().zipf = 1.15;
  for (const char *element : {"f16", "bf16"}) {
    shapes.push_back(forward(element, 8, 1000000, 64, 2048, 20));
    shapes.back().element = element;
  }
  shapes.push_back(forward("mean", 8, 1000000, 64, 2048, 20));
  shapes.back().mean = true;
  shapes.push_back(forward("weighted", 8, 1000000, 64, 2048, 20));
  shapes.back().weighted = true;
  return shapes;
}

} // namespace neuroshard::bench
