//===- GatherContenders.cpp - Upper limits of the machine -----------------===//
//
// The random-row-gather limit: sums of rows of a fixed width in registers, on
// huge pages, rows prefetched some ids ahead, one launch for all tables.
//
//===----------------------------------------------------------------------===//

#include "Contender.h"
#include "Loops.h"

#include "neuroshard/Support/InstructionSets.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace neuroshard::bench {

namespace {

constexpr int64_t kRowsAhead = 48;
constexpr int64_t kIdsPerChunk = 2048;

/// Bags [begin, end) of one table.
struct Bags {
  const float *table;
  const int64_t *ids; ///< of the whole batch.
  const int64_t *offsets;
  float *out;
  int64_t begin, end;
};

/// Sums of rows of `chunks` vectors.
template <int chunks> NEUROSHARD_INLINE inline void sumBags(const Bags &bags) {
  constexpr int64_t width = chunks * kLanes;
  int64_t last = bags.offsets[bags.end] - 1;
  for (int64_t bag = bags.begin; bag < bags.end; ++bag) {
    Vector sum[chunks] = {};
    for (int64_t i = bags.offsets[bag]; i < bags.offsets[bag + 1]; ++i) {
      // std::min would be a call: it is of another target.
      int64_t next = i + kRowsAhead < last ? i + kRowsAhead : last;
      const float *ahead = bags.table + bags.ids[next] * width;
      const float *row = bags.table + bags.ids[i] * width;
      for (int c = 0; c < chunks; ++c) {
        __builtin_prefetch(ahead + c * kLanes, 0, 2);
        sum[c] += *reinterpret_cast<const Vector *>(row + c * kLanes);
      }
    }
    for (int c = 0; c < chunks; ++c)
      *reinterpret_cast<Vector *>(bags.out + bag * width + c * kLanes) = sum[c];
  }
}

NEUROSHARD_INLINE inline float addInOrder(const float *values, int64_t count) {
  Vector sum[4] = {};
  for (int64_t i = 0; i < count; i += 4 * kLanes)
    for (int c = 0; c < 4; ++c)
      sum[c] += *reinterpret_cast<const Vector *>(values + i + c * kLanes);
  Vector all = sum[0] + sum[1] + sum[2] + sum[3];
  return all[0] + all[kLanes - 1];
}

template <int chunks> void sum(const Bags &bags) {
  runWithWidestVectors([&]() NEUROSHARD_INLINE { sumBags<chunks>(bags); });
}

using SumBags = void(const Bags &);

SumBags *loopFor(int64_t width) {
  switch (width) {
  case 16:
    return sum<1>;
  case 32:
    return sum<2>;
  case 64:
    return sum<4>;
  case 128:
    return sum<8>;
  case 256:
    return sum<16>;
  }
  throw std::runtime_error("written for rows of 64 to 1024 bytes, powers of "
                           "two, alone; these have " +
                           std::to_string(width * 4));
}

float readInOrder(const float *values, int64_t count) {
  float sum = 0;
  runWithWidestVectors(
      [&]() NEUROSHARD_INLINE { sum = addInOrder(values, count); });
  return sum;
}

class Gather final : public Contender {
public:
  Gather(const Shape &shape, int threads, const TableValues &values)
      : shape(shape), width(shape.rowBytes() / 4), loop(loopFor(width)),
        tables(shape.tables * shape.tableBytes()),
        out(shape.tables * shape.batch * width * 4), team(threads) {
    for (int64_t t = 0; t < shape.tables; ++t)
      values(t, tables.data() + t * shape.tableBytes());
    chunks = std::clamp<int64_t>(shape.batch * shape.pooling / kIdsPerChunk, 1,
                                 shape.batch);
  }

  void run(const IdSet &ids) override {
    std::atomic<int64_t> next = 0;
    team.run([&] {
      for (int64_t i; (i = next++) < shape.tables * chunks;)
        sumChunk(ids, i / chunks, i % chunks);
    });
  }

  RowsView result(int64_t table) override {
    if (shape.element != "f32" || shape.mean || shape.weighted)
      return {};
    return {outOf(table), width};
  }

private:
  float *outOf(int64_t table) const {
    return reinterpret_cast<float *>(out.data()) + table * shape.batch * width;
  }

  void sumChunk(const IdSet &ids, int64_t table, int64_t chunk) const {
    const std::byte *rows = tables.data() + table * shape.tableBytes();
    loop({reinterpret_cast<const float *>(rows), ids.ids.data(),
          ids.offsets.data() + table * shape.batch, outOf(table),
          shape.batch * chunk / chunks, shape.batch * (chunk + 1) / chunks});
  }

  const Shape shape;
  int64_t width; ///< floats with as many bytes as a row.
  SumBags *loop;
  HugeMemory tables, out;
  int64_t chunks;
  Team team;
};

class SequentialRead final : public Contender {
public:
  SequentialRead(const Shape &shape, int threads)
      : chunk(std::max<int64_t>(
            shape.numIds() * shape.rowBytes() / kChunks / 256, 1)),
        parts(std::clamp<int64_t>(shape.tables * shape.tableBytes() /
                                      (chunk * 256 * kChunks),
                                  1, 64)),
        memory(parts * kChunks * chunk * 256), team(threads) {}

  void run(const IdSet &) override {
    const auto *first = reinterpret_cast<const float *>(memory.data()) +
                        part * kChunks * chunk * 64;
    part = (part + 1) % parts;
    std::atomic<int64_t> next = 0;
    team.run([&] {
      float sum = 0;
      for (int64_t i; (i = next++) < kChunks;)
        sum += readInOrder(first + i * chunk * 64, chunk * 64);
      total.store(sum); // so that nothing is left out
    });
  }

private:
  static constexpr int64_t kChunks = 32;
  int64_t chunk; ///< in units of 256 bytes.
  int64_t parts, part = 0;
  HugeMemory memory;
  std::atomic<float> total = 0;
  Team team;
};

} // namespace

std::unique_ptr<Contender> makeGather(const Shape &shape, int threads,
                                      const TableValues &values) {
  return std::make_unique<Gather>(shape, threads, values);
}

std::unique_ptr<Contender> makeSequentialRead(const Shape &shape, int threads) {
  return std::make_unique<SequentialRead>(shape, threads);
}

} // namespace neuroshard::bench
