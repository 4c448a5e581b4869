//===- PublishedTest.cpp - The fast published search equals the plain one -===//
///
/// \file
/// A plain form of the published search, written from the paper and the tie
/// rules of the reference tasks: one placement, one device and one model call
/// at a time, without sharing or caches.
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Serialization/Json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

constexpr double kNone = 1e300;

struct Piece {
  ShardWork work;
  DeviceLoad load;
  int64_t bytes = 0;
  double aloneMs = 0;
};

/// For problems of one feature per table, weights alone, without constraints.
class PlainSearch {
public:
  PlainSearch(const ShardingProblem &problem, const CostModel &model)
      : problem(problem), model(model),
        deviceClass(
            findDeviceClass(problem.topology.devices.front().deviceClass)) {}

  double run() {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < problem.tables.size(); ++i)
      pieces.push_back(makePiece(static_cast<int>(i), problem.tables[i].dim));
    using State = std::pair<double, std::vector<Piece>>;
    std::vector<State> beam = {{place(pieces), pieces}};
    double best = beam.front().first;
    for (int round = 0; round < settings.depth && !beam.empty(); ++round) {
      std::vector<State> children;
      for (const State &parent : beam)
        for (size_t index : candidates(parent.second)) {
          std::vector<Piece> child = parent.second;
          const ShardWork &work = child[index].work;
          if (work.width % 8 != 0)
            continue;
          Piece half = makePiece(work.table, work.width / 2);
          child[index] = half;
          child.push_back(half);
          children.emplace_back(place(child), child);
          best = std::min(best, children.back().first);
        }
      std::stable_sort(
          children.begin(), children.end(),
          [](const State &a, const State &b) { return a.first < b.first; });
      if (children.size() > static_cast<size_t>(settings.beamWidth))
        children.resize(static_cast<size_t>(settings.beamWidth));
      beam = children;
    }
    return best;
  }

private:
  Piece makePiece(int table, int64_t width) const {
    const Table &source = problem.tables[static_cast<size_t>(table)];
    Piece piece;
    Shard shard = makeShard("", source.name, 0, source.rows, 0, width, {0});
    piece.work = describeShard(problem, table, {table}, shard);
    piece.load.dims = piece.work.dims;
    piece.load.forwardBytes = piece.work.forwardBytes;
    piece.load.backwardBytes = piece.work.backwardBytes;
    piece.bytes = source.rows * paddedRowBytes(width, source.elementType);
    piece.aloneMs = compute({&piece}).total();
    return piece;
  }

  ComputeMs compute(const std::vector<const Piece *> &pieces) const {
    ShardSet set{deviceClass, {}};
    for (const Piece *piece : pieces)
      set.shards.push_back(&piece->work);
    ComputeMs time;
    model.computeMs({&set, 1}, {&time, 1});
    return time;
  }

  std::vector<size_t> candidates(const std::vector<Piece> &pieces) const {
    std::set<size_t> chosen;
    auto choose = [&](auto key) {
      std::vector<size_t> order(pieces.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return key(pieces[a]) > key(pieces[b]);
      });
      for (size_t i = 0;
           i < order.size() && i < static_cast<size_t>(settings.candidates);
           ++i)
        chosen.insert(order[i]);
    };
    choose([](const Piece &piece) { return piece.bytes; });
    choose([](const Piece &piece) { return piece.aloneMs; });
    return {chosen.begin(), chosen.end()};
  }

  double place(const std::vector<Piece> &pieces) const {
    double best = kNone;
    for (int i = 0; i < settings.gridPoints; ++i)
      best = std::min(
          best, greedy(pieces, settings.gridBegin +
                                   (settings.gridEnd - settings.gridBegin) *
                                       (static_cast<double>(i) /
                                        (settings.gridPoints - 1))));
    return best;
  }

  double greedy(const std::vector<Piece> &pieces, double cap) const {
    double dims = 0;
    for (const Piece &piece : pieces)
      dims += piece.load.dims;
    std::vector<size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return pieces[a].aloneMs > pieces[b].aloneMs;
    });
    size_t devices = problem.topology.devices.size();
    std::vector<DeviceLoad> loads(devices);
    std::vector<int64_t> bytes(devices);
    std::vector<std::vector<const Piece *>> placed(devices);
    for (size_t index : order) {
      const Piece &piece = pieces[index];
      size_t where = devices;
      for (size_t d = 0; d < devices; ++d) {
        bool fits =
            bytes[d] + piece.bytes <= problem.topology.devices[d].memoryBytes &&
            loads[d].dims + piece.load.dims <=
                cap * (dims / static_cast<double>(devices));
        if (fits && (where == devices ||
                     std::pair(loads[d].compute.total(), bytes[d]) <
                         std::pair(loads[where].compute.total(), bytes[where])))
          where = d;
      }
      if (where == devices)
        return kNone;
      placed[where].push_back(&piece);
      bytes[where] += piece.bytes;
      loads[where].dims += piece.load.dims;
      loads[where].forwardBytes += piece.load.forwardBytes;
      loads[where].backwardBytes += piece.load.backwardBytes;
      loads[where].compute = compute(placed[where]);
    }
    ObjectiveOptions objective;
    objective.kind = ObjectiveKind::Published;
    return composeCost(problem.topology, loads, model, objective).costMs;
  }

  const ShardingProblem &problem;
  const CostModel &model;
  const DeviceClass *deviceClass;
  const PublishedSettings settings;
};

/// Compares the search, on 1, 2 and 8 threads, with the plain one.
void expectSameAnswer(const ShardingProblem &problem, const CostModel &model,
                      const std::string &what) {
  double plain = PlainSearch(problem, model).run();
  std::string first;
  for (int threads : {1, 2, 8}) {
    SearchOptions options;
    options.algorithm = Algorithm::Published;
    options.objective.kind = ObjectiveKind::Published;
    options.threads = threads;
    auto result = search(problem, model, options);
    ASSERT_EQ(result.has_value(), plain < kNone) << what;
    if (!result)
      return;
    EXPECT_NEAR(result->breakdown.costMs, plain, 1e-12 * plain) << what;
    std::string plan = writePlan(result->plan);
    if (first.empty())
      first = plan;
    EXPECT_EQ(plan, first) << what << " on " << threads << " threads";
  }
}

TEST(PublishedTest, SameAnswerOnTheReferenceTasks) {
  std::unique_ptr<CostModel> model = makeReferenceModel();
  for (int i = 0; i < 24; ++i) {
    std::string name = (i < 10 ? "task_0" : "task_") + std::to_string(i);
    expectSameAnswer(*readWorkload(std::string(NEUROSHARD_SOURCE_DIR) +
                                   "/test/reference_search/" + name + ".json"),
                     *model, name);
  }
}

TEST(PublishedTest, SameAnswerOnRandomTasks) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    auto draw = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() %
                                        static_cast<uint64_t>(high - low + 1));
    };
    ShardingProblem problem;
    problem.memoryModel = MemoryModel::WeightsOnly;
    problem.batch.globalSize = 65536;
    int64_t bytes = 0;
    for (int64_t i = 0, tables = draw(3, 25); i < tables; ++i) {
      int64_t dim = 4 * draw(1, 24);
      // Few sizes, so that tables tie.
      addTable(problem, makeTable(numbered("t", i), 1000 * draw(1, 4), dim),
               static_cast<double>(draw(1, 5)));
      bytes += problem.tables.back().rows * dim * 4;
    }
    problem.topology = *parseTopology(numbered("", draw(2, 6)) + "xH200");
    int64_t share = draw(60, 300);
    for (Device &device : problem.topology.devices)
      device.memoryBytes = bytes * share / 100 / problem.topology.deviceCount();
    bool reference = seed % 2 == 0;
    expectSameAnswer(problem,
                     reference ? *makeReferenceModel() : *makeRooflineModel(),
                     numbered("seed ", seed));
  }
}

} // namespace
