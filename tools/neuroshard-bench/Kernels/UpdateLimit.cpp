//===- UpdateLimit.cpp - A loop that only moves the rows of an update -----===//
//
// After a lookup it reads and writes each distinct row, with its state, once,
// in order, prefetched, on huge pages, and reads the gradient of one of its
// bags. No sort, no sum over the bags of a row, no optimizer. The rows are in
// arrays of their own: what the lookup has left in caches does not help.
//
//===----------------------------------------------------------------------===//

#include "Contender.h"
#include "Loops.h"

#include "neuroshard/Support/InstructionSets.h"

#include <algorithm>
#include <atomic>
#include <map>

namespace neuroshard::bench {

namespace {

constexpr int64_t kRowsAhead = 16;
constexpr int64_t kRowsPerChunk = 2048;

/// A row and a bag that reads it.
struct Touched {
  int64_t row, bag;
};

/// Of each table, by row.
using TouchedRows = std::vector<std::vector<Touched>>;

TouchedRows touchedRows(const Shape &shape, const IdSet &ids) {
  TouchedRows tables(static_cast<size_t>(shape.tables));
  for (int64_t t = 0; t < shape.tables; ++t) {
    std::vector<Touched> &rows = tables[static_cast<size_t>(t)];
    for (int64_t bag = 0; bag < shape.batch; ++bag)
      for (int64_t i = ids.offsets[static_cast<size_t>(t * shape.batch + bag)];
           i < ids.offsets[static_cast<size_t>(t * shape.batch + bag + 1)]; ++i)
        rows.push_back({ids.ids[static_cast<size_t>(i)], bag});
    std::stable_sort(
        rows.begin(), rows.end(),
        [](const Touched &a, const Touched &b) { return a.row < b.row; });
    rows.erase(std::unique(rows.begin(), rows.end(),
                           [](const Touched &a, const Touched &b) {
                             return a.row == b.row;
                           }),
               rows.end());
  }
  return tables;
}

/// Rows of weights, or of a state.
struct Array {
  float *first;
  int64_t width; ///< floats, of a row.
};

NEUROSHARD_INLINE inline void addRow(float *row, const float *gradient,
                                     int64_t width) {
  for (int64_t c = 0; c < width; c += kLanes)
    *reinterpret_cast<Vector *>(row + c) +=
        *reinterpret_cast<const Vector *>(gradient + c);
}

NEUROSHARD_INLINE inline void touch(const std::vector<Array> &arrays,
                                    const std::vector<Touched> &rows,
                                    const float *gradients, int64_t dim,
                                    int64_t begin, int64_t end) {
  auto last = static_cast<int64_t>(rows.size()) - 1;
  for (int64_t i = begin; i < end; ++i) {
    int64_t next = i + kRowsAhead < last ? i + kRowsAhead : last;
    for (const Array &array : arrays) {
      const float *ahead =
          array.first + rows[static_cast<size_t>(next)].row * array.width;
      for (int64_t c = 0; c < array.width; c += kLanes)
        __builtin_prefetch(ahead + c, 1, 2);
      const auto &[row, bag] = rows[static_cast<size_t>(i)];
      if (array.width == 1)
        array.first[row] += gradients[bag * dim];
      else
        addRow(array.first + row * array.width, gradients + bag * dim,
               array.width);
    }
  }
}

class UpdateLimit final : public Contender {
public:
  UpdateLimit(const Shape &shape, int threads, const TableValues &values)
      : shape(shape), gather(makeGather(shape, threads, values)),
        team(threads) {
    for (int64_t t = 0; t < shape.tables; ++t) {
      std::vector<Array> &arrays = tables.emplace_back();
      arrays.push_back(makeArray(shape.dim));
      for (int64_t width : shape.stateWidths())
        arrays.push_back(makeArray(width));
    }
  }

  void setGradient(const std::vector<float> &values) override {
    gradients = values.data();
  }

  void prepare(const IdSet &ids) override {
    rowsOf.try_emplace(&ids, touchedRows(shape, ids));
  }

  void run(const IdSet &ids) override {
    gather->run(ids);
    const TouchedRows &rows = rowsOf.at(&ids);
    std::atomic<int64_t> next = 0;
    int64_t chunks =
        (shape.batch * shape.pooling + kRowsPerChunk - 1) / kRowsPerChunk;
    team.run([&] {
      for (int64_t i; (i = next++) < shape.tables * chunks;)
        touchChunk(rows[static_cast<size_t>(i / chunks)], i / chunks,
                   i % chunks, chunks);
    });
  }

private:
  Array makeArray(int64_t width) {
    memory.push_back(std::make_unique<HugeMemory>(shape.rows * width * 4));
    return {reinterpret_cast<float *>(memory.back()->data()), width};
  }

  void touchChunk(const std::vector<Touched> &rows, int64_t table,
                  int64_t chunk, int64_t chunks) const {
    auto count = static_cast<int64_t>(rows.size());
    runWithWidestVectors([&]() NEUROSHARD_INLINE {
      touch(tables[static_cast<size_t>(table)], rows,
            gradients + table * shape.batch * shape.dim, shape.dim,
            count * chunk / chunks, count * (chunk + 1) / chunks);
    });
  }

  const Shape shape;
  std::unique_ptr<Contender> gather;
  std::vector<std::unique_ptr<HugeMemory>> memory;
  std::vector<std::vector<Array>> tables;
  const float *gradients = nullptr;
  std::map<const IdSet *, TouchedRows> rowsOf;
  Team team;
};

} // namespace

std::unique_ptr<Contender> makeUpdateLimit(const Shape &shape, int threads,
                                           const TableValues &values) {
  return std::make_unique<UpdateLimit>(shape, threads, values);
}

} // namespace neuroshard::bench
