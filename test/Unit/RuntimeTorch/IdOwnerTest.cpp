//===- IdOwnerTest.cpp - The map of ids beside a plain simulation ---------===//
//
// Shows that ids get, keep and lose rows as a simulation of the policy with
// std::map says, that rows in use stay, that lookups without training change
// nothing, that a restored map goes on as the one that was saved, and that what
// was mapped ahead of its step can be undone.
//
//===----------------------------------------------------------------------===//

#include "Ids/IdOwner.h"
#include "neuroshard/Support/Random.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace neuroshard::runtime {
namespace {

/// The policy as the documentation states it, by sorting everything.
struct Simulation {
  IdPolicy policy;
  std::set<int64_t> free;
  std::map<int64_t, IdEntry> entries = {};
  std::map<int64_t, int64_t> lastUse = {};
  struct Candidate {
    int64_t count;
    int64_t last;
    int64_t place;
  };
  std::map<int64_t, Candidate> candidates = {};
  std::set<int64_t> freePlaces = {};
  IdFigures figures = {};
  int64_t batch = 0;

  using Key = std::tuple<int64_t, int64_t, int64_t>;
  Key keyOf(const IdEntry &entry) const {
    if (policy.evictBy == EvictBy::Recency)
      return {entry.last, 0, entry.row};
    if (policy.evictBy == EvictBy::Frequency)
      return {entry.count, entry.last, entry.row};
    return {entry.since, 0, entry.row};
  }

  void makeRoom(int64_t wanted, int64_t firstHeld) {
    std::vector<std::pair<Key, int64_t>> order;
    for (const auto &[id, entry] : entries)
      if (lastUse[id] < firstHeld)
        order.push_back({keyOf(entry), id});
    std::ranges::sort(order);
    for (const auto &[key, id] : order) {
      if (wanted-- <= 0)
        break;
      free.insert(entries.at(id).row);
      entries.erase(id);
      ++figures.evicted;
    }
  }

  void forgetCandidates(int64_t wanted) {
    for (; wanted > 0; --wanted) {
      auto first = candidates.end();
      for (auto it = candidates.begin(); it != candidates.end(); ++it)
        if (it->second.last < batch &&
            (first == candidates.end() ||
             std::pair(it->second.last, it->second.place) <
                 std::pair(first->second.last, first->second.place)))
          first = it;
      if (first == candidates.end())
        return;
      freePlaces.insert(first->second.place);
      candidates.erase(first);
      ++figures.forgotten;
    }
  }

  std::vector<std::pair<int64_t, int64_t>>
  countUnknown(const std::vector<int64_t> &unknown) {
    std::vector<std::pair<int64_t, int64_t>> due;
    std::vector<int64_t> unseen;
    for (int64_t id : unknown) {
      if (policy.admitAfter == 1) {
        due.push_back({id, 1});
      } else if (auto found = candidates.find(id); found != candidates.end()) {
        found->second.last = batch;
        if (++found->second.count >= policy.admitAfter)
          due.push_back({id, found->second.count});
      } else {
        unseen.push_back(id);
      }
    }
    forgetCandidates(static_cast<int64_t>(unseen.size()) -
                     static_cast<int64_t>(freePlaces.size()));
    for (int64_t id : unseen) {
      if (freePlaces.empty()) {
        ++figures.forgotten;
        continue;
      }
      candidates[id] = {1, batch, *freePlaces.begin()};
      freePlaces.erase(freePlaces.begin());
    }
    return due;
  }

  Translated train(const std::vector<int64_t> &ids, int64_t lookup,
                   int64_t firstHeld) {
    ++batch;
    std::vector<int64_t> unknown;
    std::set<int64_t> seen;
    for (int64_t id : ids) {
      if (!seen.insert(id).second)
        continue;
      if (auto found = entries.find(id); found != entries.end()) {
        ++found->second.count;
        found->second.last = batch;
        lastUse[id] = lookup;
      } else {
        unknown.push_back(id);
      }
    }
    auto due = countUnknown(unknown);
    if (policy.whenFull == WhenFull::Evict)
      makeRoom(static_cast<int64_t>(due.size()) -
                   static_cast<int64_t>(free.size()),
               firstHeld);
    Translated result;
    for (auto [id, count] : due) {
      if (free.empty()) {
        ++figures.refused;
        if (policy.whenFull == WhenFull::Refuse && !result.refused)
          result.refused = id;
        continue;
      }
      int64_t row = *free.begin();
      free.erase(free.begin());
      entries[id] = {row, count, batch, id, batch};
      lastUse[id] = lookup;
      result.admitted.push_back({row, id});
      ++figures.admitted;
      if (auto found = candidates.find(id); found != candidates.end()) {
        freePlaces.insert(found->second.place);
        candidates.erase(found);
      }
    }
    for (int64_t id : ids)
      result.rows.push_back(entries.contains(id) ? entries.at(id).row
                                                 : policy.sharedRow);
    return result;
  }
};

constexpr int64_t kShared = 1000;

/// Random batches of an owner and the simulation.
class IdOwnerTest : public testing::TestWithParam<
                        std::tuple<EvictBy, WhenFull, int64_t, int64_t>> {
protected:
  static IdPolicy policyOf() {
    auto [by, full, after, candidates] = GetParam();
    return {after, by, full, kShared, candidates};
  }
  static std::vector<int64_t> rows() {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < 40; ++i)
      rows.push_back(i * 7 % 40 * 3);
    return rows;
  }
  static Simulation simulate(const IdPolicy &policy) {
    std::vector<int64_t> all = rows();
    Simulation simulation{policy, {all.begin(), all.end()}};
    for (int64_t i = 0; i < policy.numCandidates; ++i)
      simulation.freePlaces.insert(i);
    return simulation;
  }
  /// Skewed: some ids come again and again, others seldom.
  static std::vector<int64_t> draw(MersenneTwister &random) {
    std::vector<int64_t> ids;
    for (int64_t i = random.between(0, 24); i > 0; --i) {
      double u = random.uniform();
      ids.push_back(static_cast<int64_t>(200 * u * u * u) - 20);
    }
    return ids;
  }
  static void check(const IdOwner &owner, const Simulation &expected) {
    std::map<int64_t, IdEntry> found;
    for (const IdEntry &entry : owner.map().slots())
      if (entry.isUsed())
        found[entry.id] = entry;
    ASSERT_EQ(found, expected.entries);
    std::map<int64_t, int64_t> counts, expectedCounts;
    for (const IdEntry &entry : owner.candidates().slots())
      if (entry.isUsed())
        counts[entry.id] = entry.count;
    for (const auto &[id, one] : expected.candidates)
      expectedCounts[id] = one.count;
    ASSERT_EQ(counts, expectedCounts);
  }
};

TEST_P(IdOwnerTest, FollowsTheSimulation) {
  MersenneTwister random(11);
  IdOwner owner(rows(), policyOf());
  Simulation expected = simulate(policyOf());
  for (int64_t lookup = 1; lookup <= 600; ++lookup) {
    SCOPED_TRACE(lookup);
    std::vector<int64_t> ids = draw(random);
    // Sometimes the steps before are not over.
    int64_t firstHeld = lookup - (random.chance(20) ? random.between(1, 3) : 0);
    Translated found = owner.train(ids, lookup, firstHeld);
    Translated wanted = expected.train(ids, lookup, firstHeld);
    ASSERT_EQ(found.rows, wanted.rows);
    ASSERT_EQ(found.admitted, wanted.admitted);
    ASSERT_EQ(found.refused, wanted.refused);
    ASSERT_NO_FATAL_FAILURE(check(owner, expected));
  }
  EXPECT_EQ(owner.figures().admitted, expected.figures.admitted);
  EXPECT_EQ(owner.figures().evicted, expected.figures.evicted);
  EXPECT_EQ(owner.figures().refused, expected.figures.refused);
  EXPECT_EQ(owner.figures().forgotten, expected.figures.forgotten);
  // The batches have tried what the policy is about.
  EXPECT_GT(owner.figures().admitted, 30);
  if (policyOf().whenFull == WhenFull::Evict)
    EXPECT_GT(owner.figures().evicted, 30);
  else
    EXPECT_GT(owner.figures().refused, 30);
}

TEST_P(IdOwnerTest, LookupsChangeNothing) {
  MersenneTwister random(12);
  IdOwner owner(rows(), policyOf());
  Simulation expected = simulate(policyOf());
  for (int64_t lookup = 1; lookup <= 50; ++lookup) {
    std::vector<int64_t> ids = draw(random);
    owner.train(ids, lookup, lookup);
    expected.train(ids, lookup, lookup);
  }
  std::vector<int64_t> ids = {std::numeric_limits<int64_t>::min()};
  for (int64_t id = -30; id < 200; ++id)
    ids.push_back(id);
  std::vector<int64_t> found = owner.find(ids, 51).rows;
  for (size_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(found[i], expected.entries.contains(ids[i])
                            ? expected.entries.at(ids[i]).row
                            : kShared);
  ASSERT_NO_FATAL_FAILURE(check(owner, expected));
  EXPECT_EQ(owner.figures().admitted, expected.figures.admitted);
}

TEST_P(IdOwnerTest, GoesOnAfterRestore) {
  MersenneTwister random(13);
  IdOwner owner(rows(), policyOf()), other(rows(), policyOf());
  int64_t lookup = 0;
  while (++lookup <= 60)
    owner.train(draw(random), lookup, lookup);
  auto used = [](const IdMap &map) {
    std::vector<IdEntry> entries;
    for (const IdEntry &entry : map.slots())
      if (entry.isUsed())
        entries.push_back(entry);
    return entries;
  };
  other.train(draw(random), 1, 1); // is forgotten
  other.restore(used(owner.map()), used(owner.candidates()), owner.batches());
  for (; lookup <= 120; ++lookup) {
    std::vector<int64_t> ids = draw(random);
    Translated wanted = owner.train(ids, lookup, lookup);
    Translated found = other.train(ids, lookup, lookup);
    ASSERT_EQ(found.rows, wanted.rows);
    ASSERT_EQ(found.admitted, wanted.admitted);
  }
  EXPECT_EQ(other.map().slots(), owner.map().slots());
}

TEST_P(IdOwnerTest, UndoesWhatWasMappedAhead) {
  MersenneTwister random(14);
  IdOwner owner(rows(), policyOf()), other(rows(), policyOf());
  for (int64_t lookup = 1; lookup <= 200; ++lookup) {
    std::vector<int64_t> ids = draw(random), next = draw(random);
    int64_t firstHeld = lookup - (random.chance(20) ? 1 : 0);
    owner.beginAhead();
    bool isOther = random.chance(50);
    owner.train(isOther ? next : ids, lookup, firstHeld);
    owner.beginAhead();
    owner.train(isOther ? ids : next, lookup + 1, lookup + 1);
    // What others see is without both.
    ASSERT_EQ(owner.entriesBefore(), other.map().slots());
    ASSERT_EQ(owner.candidatesBefore(), other.candidates().slots());
    ASSERT_EQ(owner.batches(), other.batches());
    ASSERT_EQ(owner.figures().admitted, other.figures().admitted);
    std::vector<int64_t> wanted = other.train(ids, lookup, firstHeld).rows;
    if (isOther) {
      owner.undoAhead();
      ASSERT_EQ(owner.train(ids, lookup, firstHeld).rows, wanted);
    } else {
      owner.keepAhead();
      ASSERT_EQ(owner.entriesBefore(), other.map().slots());
      owner.undoAhead();
    }
    ASSERT_EQ(owner.map().slots(), other.map().slots());
    ASSERT_EQ(owner.candidates().slots(), other.candidates().slots());
    ASSERT_EQ(owner.figures().evicted, other.figures().evicted);
  }
}

/// Of so many rows the next to evict are chosen by a sample of them.
TEST(IdOwner, FollowsTheSimulationWithManyRows) {
  constexpr int64_t kRows = 3000;
  for (EvictBy by : {EvictBy::Recency, EvictBy::Frequency, EvictBy::Age}) {
    SCOPED_TRACE(static_cast<int>(by));
    IdPolicy policy{1, by, WhenFull::Evict, kRows, 0};
    std::vector<int64_t> rows;
    Simulation expected{policy, {}};
    for (int64_t row = 0; row < kRows; ++row) {
      rows.push_back(row);
      expected.free.insert(row);
    }
    IdOwner owner(rows, policy);
    MersenneTwister random(17);
    for (int64_t lookup = 1; lookup <= 24; ++lookup) {
      SCOPED_TRACE(lookup);
      std::vector<int64_t> ids;
      for (int64_t i = random.between(200, 900); i > 0; --i) {
        double u = random.uniform();
        ids.push_back(static_cast<int64_t>(12000 * u * u));
      }
      // Now and then almost all rows are held.
      int64_t firstHeld = lookup % 8 == 0 ? lookup - 7 : lookup;
      Translated found = owner.train(ids, lookup, firstHeld);
      Translated wanted = expected.train(ids, lookup, firstHeld);
      ASSERT_EQ(found.rows, wanted.rows);
      ASSERT_EQ(found.admitted, wanted.admitted);
    }
    EXPECT_EQ(owner.figures().evicted, expected.figures.evicted);
    EXPECT_GT(owner.figures().evicted, kRows / 8);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, IdOwnerTest,
    testing::Combine(
        testing::Values(EvictBy::Recency, EvictBy::Frequency, EvictBy::Age),
        testing::Values(WhenFull::Evict, WhenFull::Share, WhenFull::Refuse),
        testing::Values(1, 3), testing::Values(30, 60)));

TEST(IdOwnerFixed, RowsInUseStay) {
  IdOwner owner({0, 1, 2}, {.sharedRow = kShared});
  EXPECT_EQ(owner.train(std::vector<int64_t>{5, 6}, 1, 1).rows,
            (std::vector<int64_t>{0, 1}));
  // 5 and 6 are in use by lookup 1, which is not over: 8 gets no row.
  EXPECT_EQ(owner.train(std::vector<int64_t>{7, 8}, 2, 1).rows,
            (std::vector<int64_t>{2, kShared}));
  EXPECT_EQ(owner.figures().refused, 1);
  // Now they are free to go, the lower row first.
  EXPECT_EQ(owner.train(std::vector<int64_t>{8}, 3, 3).rows,
            (std::vector<int64_t>{0}));
  // Ids of the same batch do not evict each other.
  EXPECT_EQ(owner.train(std::vector<int64_t>{1, 2, 3, 4}, 4, 4).rows,
            (std::vector<int64_t>{0, 1, 2, kShared}));
  EXPECT_EQ(owner.find(std::vector<int64_t>{4, 3, 8}, 5).rows,
            (std::vector<int64_t>{kShared, 2, kShared}));
}

} // namespace
} // namespace neuroshard::runtime
