//===- BoardTest.cpp - Every edit keeps totals and plan in order ----------===//

#include "LocalSearch/Board.h"
#include "InitialUnits/InitialUnits.h"
#include "LocalSearch/EditBatch.h"
#include "LocalSearch/LocalSearch.h"
#include "LocalSearch/MoveEstimate.h"
#include "LocalSearch/Proposals.h"
#include "Placement/Greedy.h"
#include "SearchTasks.h"
#include "Support.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <sstream>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// A problem, its context, and a board with whole tables placed greedily.
struct Setting {
  explicit Setting(ShardingProblem given, bool reference = false)
      : problem(std::move(given)),
        model(reference ? makeReferenceModel() : makeRooflineModel()) {
    options.objective.kind =
        reference ? ObjectiveKind::Published : ObjectiveKind::Step;
    context = std::make_unique<SearchContext>(problem, *model, options);
    units = *initialUnits(*context);
    GreedyJob job;
    job.units = units;
    job.order = orderByCost(*context, units);
    GreedyJob *jobs[] = {&job};
    GreedyPlacer(*context, {kNoCap}).run(jobs);
    board = std::make_unique<Board>(*context, units, stateOf(*context, job));
  }

  /// Applies an edit with the compute of the model.
  void apply(const Edit &edit) {
    EditBatch batch(*board);
    batch.add(edit);
    batch.run();
    board->apply(edit, batch.change(0));
  }
  ShardingPlan plan() const { return board->state().plan(); }
  int pieceOf(const std::string &table, int64_t width = 0) const {
    for (int i = 0; i < board->pieceSlots(); ++i) {
      const BoardPiece &piece = board->piece(i);
      if (piece.device >= 0 && (!width || piece.width == width) &&
          board->regionOf(piece).whole->shards.front().table == table)
        return i;
    }
    return -1;
  }

  ShardingProblem problem;
  std::unique_ptr<CostModel> model;
  SearchOptions options;
  std::unique_ptr<SearchContext> context;
  std::vector<UnitPtr> units;
  std::unique_ptr<Board> board;
};

/// Ranges and devices of a table's shards: "0-1000x0-8@1 ".
std::string shardsOf(const ShardingPlan &plan, const std::string &table) {
  std::ostringstream out;
  for (const Shard &shard : plan.shards)
    if (shard.table == table)
      out << shard.rowBegin << '-' << shard.rowEnd << 'x' << shard.colBegin
          << '-' << shard.colEnd << '@' << shard.devices.front() << ' ';
  return out.str();
}

TEST(BoardTest, MoveAndSwap) {
  Setting setting(twoTables());
  Board &board = *setting.board;
  int a = setting.pieceOf("a"), b = setting.pieceOf("b");
  int home = board.piece(a).device, other = board.piece(b).device;
  ASSERT_NE(home, other);
  setting.apply(board.swap(a, b));
  EXPECT_EQ(board.piece(a).device, other);
  EXPECT_EQ(board.piece(b).device, home);
  setting.apply(board.move(a, home));
  EXPECT_EQ(board.piece(a).device, home);
  EXPECT_EQ(board.move(a, home).kind, Edit::None);
  EXPECT_EQ(board.swap(a, b).kind, Edit::None);
}

TEST(BoardTest, SplitRewidthAndJoinColumns) {
  Setting setting(twoTables());
  Board &board = *setting.board;
  int a = setting.pieceOf("a");
  int home = board.piece(a).device;
  EXPECT_EQ(board.split(a, 1 - home, false, 6).kind, Edit::None);
  EXPECT_EQ(board.split(a, 1 - home, false, 16).kind, Edit::None);
  setting.apply(board.split(a, 1 - home, false, 12));
  int part = setting.pieceOf("a", 4);
  EXPECT_EQ(board.piece(part).device, 1 - home);
  setting.apply(board.rewidth(a, part, 4));
  EXPECT_EQ(board.piece(a).width, 4);
  EXPECT_EQ(board.piece(part).width, 12);
  setting.apply(board.join(a, part));
  EXPECT_EQ(board.piece(a).width, 16);
  EXPECT_EQ(board.pieceCount(), 2);
  EXPECT_EQ(shardsOf(setting.plan(), "a"),
            home == 0 ? "0-1000x0-16@0 " : "0-1000x0-16@1 ");
}

TEST(BoardTest, SplitRowsThenColumnsOfABand) {
  Setting setting(twoTables());
  Board &board = *setting.board;
  int a = setting.pieceOf("a");
  int home = board.piece(a).device;
  setting.apply(board.split(a, 1 - home, true, 300));
  setting.apply(board.split(a, 1 - home, false, 8));
  // A band that is cut into columns is not cut by rows as well.
  EXPECT_EQ(board.split(a, 1 - home, true, 100).kind, Edit::None);
  std::set<std::string> shards;
  for (const Shard &shard : setting.plan().shards)
    if (shard.table == "a")
      shards.insert(std::to_string(shard.rows()) + "x" +
                    std::to_string(shard.width()));
  EXPECT_EQ(shards, (std::set<std::string>{"300x8", "700x16"}));
  EXPECT_EQ(text(verify(setting.plan(), setting.problem)), "");
}

TEST(BoardTest, ExchangeGivesAPartForAPiece) {
  Setting setting(twoTables());
  Board &board = *setting.board;
  int a = setting.pieceOf("a"), b = setting.pieceOf("b");
  int home = board.piece(a).device;
  setting.apply(board.exchange(a, b, false, 12));
  EXPECT_EQ(board.piece(a).width, 12);
  EXPECT_EQ(board.piece(b).device, home);
  EXPECT_EQ(board.piece(setting.pieceOf("a", 4)).device, 1 - home);
}

TEST(BoardTest, MemoryAndRulesDecideWhatFits) {
  ShardingProblem problem = twoTables();
  problem.memoryModel = MemoryModel::WeightsOnly;
  // a takes 64,000 bytes, b 16,000.
  for (Device &device : problem.topology.devices)
    device.memoryBytes = 70'000;
  problem.constraints.forbids = {{0, {1}}};
  Setting setting(problem);
  Board &board = *setting.board;
  int a = setting.pieceOf("a"), b = setting.pieceOf("b");
  EXPECT_FALSE(board.fits(board.move(b, 0)));
  EXPECT_FALSE(board.fits(board.move(a, 1)));
  EXPECT_FALSE(board.fits(board.split(a, 1, false, 8)));
}

/// Part of an exchanged piece stays on its device, so no separated table may
/// come there. In a swap the whole piece leaves.
TEST(BoardTest, SeparatedTablesSwapButDoNotExchange) {
  ShardingProblem problem = twoTables();
  problem.constraints.separate = {{0, 1}};
  Setting setting(problem);
  Board &board = *setting.board;
  int a = setting.pieceOf("a"), b = setting.pieceOf("b");
  EXPECT_TRUE(board.fits(board.swap(a, b)));
  EXPECT_FALSE(board.fits(board.exchange(a, b, false, 12)));
  setting.apply(board.swap(a, b));
  EXPECT_TRUE(board.fits(board.swap(a, b)));
}

/// After many random edits the totals are those of a board made anew from the
/// plan, and the plan is valid.
TEST(BoardTest, RandomEditsKeepTheTotals) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Setting setting(randomTask({10, 20, 3, 6, 0.6, 0.95}, seed));
    Board &board = *setting.board;
    Proposals proposals(board, seed);
    std::map<int, int> applied;
    for (int step = 0; step < 3000; ++step) {
      Edit edit = proposals.draw({0});
      if (edit.kind == Edit::None || !board.fits(edit))
        continue;
      setting.apply(edit);
      ++applied[edit.kind];
    }
    EXPECT_EQ(applied.size(), 6u) << "every kind of edit was made";
    ASSERT_EQ(text(verify(setting.plan(), setting.problem)), "") << seed;
    SearchState state = board.state();
    for (int device = 0; device < setting.context->deviceCount; ++device) {
      const DeviceLoad &kept = board.loadOf(device);
      const DeviceLoad &fresh = state.loadOf(device);
      EXPECT_DOUBLE_EQ(kept.dims, fresh.dims);
      EXPECT_NEAR(kept.forwardBytes, fresh.forwardBytes,
                  1e-9 * fresh.forwardBytes);
      EXPECT_NEAR(kept.compute.total(), fresh.compute.total(),
                  1e-6 * fresh.compute.total());
      EXPECT_EQ(board.totals().shardsOn(device),
                static_cast<int>(state.unitsOn(device).size()));
    }
  }
}

/// Tables of a task with caches, some in host memory and some on disk; four
/// devices in one group are on two hosts.
ShardingProblem taskBelowDeviceMemory(uint64_t seed) {
  ShardingProblem problem = randomTask({12, 12, 4, 4, 0.6, 0.95}, seed);
  Topology topology = *parseTopology("4xA100-40GB");
  topology.hosts.push_back(topology.hosts.front());
  topology.devices[2].host = topology.devices[3].host = 1;
  for (size_t i = 0; i < topology.devices.size(); ++i)
    topology.devices[i].memoryBytes = problem.topology.devices[i].memoryBytes;
  problem.topology = topology;
  problem.batch.globalSize = 4096;
  for (int table = 0; table < 12; ++table)
    if (table % 3 > 0)
      problem.constraints.tables.push_back(
          {.table = table,
           .cacheShare = 0.05,
           .tier = table % 3 == 1 ? Tier::Dram : Tier::Ssd});
  return problem;
}

/// Draws edits and applies those that fit. Calls `check` after each of them
/// with the energy and the cost that were estimated for it. Returns how many.
int applyDrawn(Board &board, MoveEstimate &cost, uint64_t seed, int draws,
               const std::function<void(double, double)> &check) {
  Proposals proposals(board, seed);
  int applied = 0;
  for (int i = 0; i < draws; ++i) {
    Edit edit = proposals.draw(cost.critical());
    if (edit.kind == Edit::None || !board.fits(edit))
      continue;
    EditBatch batch(board);
    batch.add(edit);
    batch.run();
    double energy = cost.energyAfter(batch.change(0));
    double exact = cost.costAfter(batch.change(0));
    board.apply(edit, batch.change(0));
    cost.measure(true);
    check(energy, exact);
    ++applied;
  }
  return applied;
}

TEST(BoardTest, FetchesOfEditsAreThoseOfThePlan) {
  int fetching = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int depth : {1, 2}) {
      Setting setting(taskBelowDeviceMemory(seed));
      setting.options.objective.pipelineDepth = depth;
      Board &board = *setting.board;
      MoveEstimate cost(board, 1024);
      applyDrawn(board, cost, seed, 60, [&](double, double exact) {
        EXPECT_NEAR(cost.costMs(), exact, 1e-9 * exact);
      });
      ShardingPlan plan = setting.plan();
      ASSERT_EQ(text(verify(plan, setting.problem)), "");
      CostBreakdown fresh = evaluate(setting.problem, plan, *setting.model,
                                     setting.options.objective);
      EXPECT_NEAR(board.state().costMs(), fresh.costMs, 1e-9 * fresh.costMs);
      EXPECT_NEAR(cost.costMs(), board.state().costMs(), 1e-9 * fresh.costMs);
      fetching += fresh.fetchMs > 0;
    }
  }
  EXPECT_GT(fetching, 20);
}

/// The time of the disks of two hosts, and of links, after a move between them.
TEST(BoardTest, EstimatesFollowFetches) {
  Setting setting(taskBelowDeviceMemory(5));
  MoveEstimate cost(*setting.board, 1024);
  int close = 0;
  int steps =
      applyDrawn(*setting.board, cost, 1, 300, [&](double estimate, double) {
        close += std::abs(cost.energyMs() - estimate) < 0.02 * estimate;
      });
  EXPECT_GT(steps, 50);
  EXPECT_GT(close, 8 * steps / 10);
}

/// Where communication is linear, as in the reference's closed form, estimates
/// of an edit come close to the energy that is measured after it.
TEST(BoardTest, EstimatesAreCloseForStraightLines) {
  Setting setting(randomTask({20, 20, 5, 5, 0.6, 0.95}, 3), true);
  MoveEstimate cost(*setting.board, 64);
  int close = 0;
  int steps = applyDrawn(
      *setting.board, cost, 1, 400, [&](double estimate, double exact) {
        EXPECT_NEAR(cost.costMs(), exact, 1e-9 * exact);
        EXPECT_NEAR(cost.energyMs(), estimate, 0.05 * estimate);
        close += std::abs(cost.energyMs() - estimate) < 0.01 * estimate;
      });
  EXPECT_GT(steps, 100);
  EXPECT_GT(close, 9 * steps / 10);
}

/// A table cut into columns needs room to put them in order on every device;
/// so does one cut by an exchange.
TEST(BoardTest, ExchangeNeedsRoomForColumnsInOrder) {
  Setting setting(twoTables());
  Board &board = *setting.board;
  int a = setting.pieceOf("a"), b = setting.pieceOf("b");
  Edit edit = board.exchange(a, b, false, 12);
  ASSERT_GT(columnPermuteBytes(setting.problem, setting.problem.tables[0], {0}),
            0);
  setting.apply(edit);
  MemoryReport needed = planMemory(setting.problem, setting.plan().shards);
  for (size_t short1 : {0, 1, 2}) {
    Setting again(twoTables());
    for (size_t d = 0; d < 2; ++d)
      again.problem.topology.devices[d].memoryBytes =
          needed.devices[d].peakBytes() - (d == short1 ? 1 : 0);
    int first = again.pieceOf("a"), second = again.pieceOf("b");
    EXPECT_EQ(
        again.board->fits(again.board->exchange(first, second, false, 12)),
        short1 == 2);
  }
}

/// The bounds decide as the energy itself would, and an edit judged alone has
/// the same loads as in a batch.
TEST(BoardTest, BoundsDecideAsTheEnergyDoes) {
  for (bool reference : {false, true}) {
    Setting setting(randomTask({20, 20, 5, 5, 0.6, 0.95}, 4), reference);
    Board &board = *setting.board;
    Proposals proposals(board, 2);
    for (int power : {16, 256}) {
      MoveEstimate cost(board, power);
      for (int i = 0; i < 300; ++i) {
        Edit edit = proposals.draw(cost.critical());
        if (edit.kind == Edit::None || !board.fits(edit))
          continue;
        EditBatch batch(board);
        batch.add(edit);
        batch.run();
        LoadChange alone;
        EditBatch::judge(board, edit, alone);
        const LoadChange &change = batch.change(0);
        EXPECT_EQ(alone.load.compute.total(), change.load.compute.total());
        EXPECT_EQ(alone.targetLoad.compute.total(),
                  change.targetLoad.compute.total());
        EXPECT_EQ(alone.load.dims, change.load.dims);
        double after = cost.energyAfter(change);
        // High powers of much worse values overflow.
        if (!std::isfinite(after)) {
          EXPECT_FALSE(cost.isBelow(change, 1e300));
          continue;
        }
        for (double factor : {0.5, 1 - 1e-3, 1 - 1e-9, 1 + 1e-9, 1 + 1e-3, 2.0})
          EXPECT_EQ(cost.isBelow(change, factor * after), factor > 1)
              << factor << " x " << after << ", power " << power;
        if (i % 3 == 0) {
          board.apply(edit, change);
          cost.measure(true);
        }
      }
    }
  }
}

TEST(BoardTest, JoinPiecesTakesWhatTheLimitAllows) {
  Setting setting(randomTask({12, 12, 4, 4, 0.6, 0.95}, 8));
  Board &board = *setting.board;
  Proposals proposals(board, 3);
  for (int i = 0; i < 2000; ++i) {
    Edit edit = proposals.draw({0});
    if (edit.kind != Edit::None && board.fits(edit))
      setting.apply(edit);
  }
  int before = board.pieceCount();
  ASSERT_GT(before, 20);
  int64_t evaluations = 0;
  double limit = 1.02 * MoveEstimate(board, 256).costMs();
  double costMs = joinPieces(board, limit, evaluations);
  EXPECT_LE(costMs, limit);
  EXPECT_NEAR(costMs, board.state().costMs(), 1e-9 * costMs);
  EXPECT_EQ(text(verify(setting.plan(), setting.problem)), "");
  EXPECT_LT(board.pieceCount(), before);
  // No join is left that the limit allows.
  MoveEstimate cost(board, 256);
  for (int a = 0; a < board.pieceSlots(); ++a)
    for (int b = 0; b < board.pieceSlots(); ++b) {
      if (board.piece(a).device < 0 || board.piece(b).device < 0)
        continue;
      Edit edit = board.join(a, b);
      if (edit.kind == Edit::None || !board.fits(edit))
        continue;
      LoadChange change;
      EditBatch::judge(board, edit, change);
      EXPECT_GT(cost.costAfter(change), limit * (1 - 1e-9));
    }
}

/// Annealing cuts nothing if each cut must save more than the whole cost.
TEST(BoardTest, AnnealingCutsOnlyWhatIsWorthIt) {
  for (double worth : {0.0, 2.0}) {
    Setting setting(randomTask({12, 12, 4, 4, 0.6, 0.95}, 9));
    Board &board = *setting.board;
    int before = board.pieceCount();
    double startMs = MoveEstimate(board, 256).costMs();
    AnnealSettings settings;
    settings.steps = 20'000;
    settings.pieceWorth = worth;
    int64_t evaluations = 0;
    double costMs = anneal(board, settings, evaluations);
    EXPECT_LT(costMs, startMs);
    EXPECT_NEAR(costMs, board.state().costMs(), 1e-9 * costMs);
    if (worth > 0)
      EXPECT_EQ(board.pieceCount(), before);
    else
      EXPECT_GT(board.pieceCount(), before);
  }
}

} // namespace
