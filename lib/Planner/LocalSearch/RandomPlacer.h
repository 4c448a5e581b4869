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

/// Units that are placed together: those of a table, of a co-located set, or of
/// a table with shards written by hand.
struct RandomEntry {
  std::vector<int> tables;
  bool given = false;
  /// Of a co-located set: the devices of its shards written by hand.
  std::vector<int> fixedOn;
  /// Range in the units with which every try begins.
  size_t first = 0, count = 0;
};

/// One try of restartRandomly(): draws a form for every table, an order of the
/// tables, and a rule to choose devices. Cuts units that fit nowhere so that
/// they fill a device.
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
