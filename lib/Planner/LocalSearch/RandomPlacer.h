//===- RandomPlacer.h - One random placement --------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMPLACER_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMPLACER_H

#include "Units/SearchState.h"

#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace neuroshard {

/// What is placed together in one way: a table, a co-located set, or what a
/// table with shards written by hand is made of.
struct RandomEntry {
  std::vector<int> tables;
  bool given = false;
  /// Of a set: the devices of what is written by hand.
  std::vector<int> fixedOn;
  /// Into the units every try begins with.
  size_t first = 0, count = 0;
};

/// One try of restartRandomly(): draws a form for every table, an order, and
/// how a device is chosen; cuts what fits nowhere so that it fills a device.
class RandomPlacer {
public:
  RandomPlacer(const SearchContext &context, const std::vector<UnitPtr> &units,
               const std::vector<RandomEntry> &entries, uint64_t seed)
      : context(context), entries(entries), random(seed),
        state(context, units) {
    all.resize(static_cast<size_t>(context.deviceCount));
    std::iota(all.begin(), all.end(), 0);
  }

  std::optional<SearchState> run();

private:
  bool placeEntry(const RandomEntry &entry);
  bool placeTable(size_t index);
  bool placeSet(const RandomEntry &entry);
  bool placeRest(size_t index, int table, const std::vector<int> &devices);
  bool shareRows(size_t index, const std::vector<int> &devices);
  bool placeMember(size_t index, const std::vector<int> &devices);
  bool placeReplicas(size_t index);
  bool placeBlocks(size_t index, const std::vector<int> &devices);
  bool placeCut(size_t index, const std::vector<int> &devices, bool rows);
  bool pourRows(size_t index, const std::vector<int> &devices);
  UnitPtr rowsOf(const Unit &unit, int64_t begin, int64_t end);
  bool placeRowBlocks(size_t index);
  bool placeFree(size_t index, const std::vector<int> &devices);
  bool placeParts(size_t index, const std::vector<UnitPtr> &parts,
                  const std::vector<int> &devices);
  std::vector<int> shuffled(std::vector<int> devices);
  std::optional<std::vector<UnitPtr>> fill(const Unit &unit, int device,
                                           Cut direction);
  std::optional<std::vector<UnitPtr>> cutAnywhere(const Unit &unit,
                                                  Cut direction);
  int tableOf(size_t index) const {
    return state.units()[index]->tables.front();
  }
  uint64_t below(size_t count) { return random() % count; }
  double share() { return static_cast<double>(below(1000) + 1) / 1002; }

  const SearchContext &context;
  const std::vector<RandomEntry> &entries;
  std::mt19937_64 random;
  SearchState state;
  std::vector<int> all;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_RANDOMPLACER_H
