//===- PlaceForms.cpp - Greedy placement of tables in their forms ---------===//

#include "TableForms.h"

#include <algorithm>
#include <numeric>
#include <tuple>

using namespace neuroshard;

namespace {

class FormPlacer {
public:
  FormPlacer(const SearchContext &context,
             std::span<const TableForm *const> forms,
             const std::function<double(const Unit &)> &load)
      : context(context), forms(forms), load(load),
        loads(static_cast<size_t>(context.deviceCount)) {}

  std::optional<SearchState>
  run(const std::function<double(const TableForm &)> &key, UnitPtr &blocking);

private:
  std::vector<size_t>
  orderBy(const std::function<double(const TableForm &)> &key) const;
  bool placeForm(SearchState &state, size_t form, UnitPtr &blocking);
  bool placePiece(SearchState &state, size_t index,
                  std::span<const int> devices);
  bool placeInOneGroup(SearchState &state, size_t form);
  bool placeByRows(SearchState &state, size_t index, const TableForm &form);
  void put(SearchState &state, size_t index, int device) {
    loads[static_cast<size_t>(device)] += load(*state.units()[index]);
    state.place(index, device);
  }
  void addPlaced(int where, const Unit &unit);
  /// The groups of a form by load, the smallest first.
  std::vector<const std::vector<int> *>
  groupsByLoad(const TableForm &form) const;
  double loadOf(int device) const { return loads[static_cast<size_t>(device)]; }

  const SearchContext &context;
  std::span<const TableForm *const> forms;
  const std::function<double(const Unit &)> &load;
  /// Load of each device so far.
  std::vector<double> loads;
  /// Index in the state of each form's first unit.
  std::vector<size_t> firstPiece;
  std::vector<int> all;
};

std::vector<size_t>
FormPlacer::orderBy(const std::function<double(const TableForm &)> &key) const {
  using Rank = std::tuple<bool, int, double>;
  std::vector<Rank> ranks;
  for (const TableForm *form : forms) {
    bool uniform = form->kind == FormKind::RowWise;
    ranks.emplace_back(!uniform, freedomOf(context, *form->units.front()),
                       -key(*form));
  }
  std::vector<size_t> order(forms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ranks[a] < ranks[b]; });
  return order;
}

/// Adds the load of the units without a choice.
void FormPlacer::addPlaced(int where, const Unit &unit) {
  if (where == SearchState::kUnplaced)
    return;
  for (int device : all)
    if (where == device || where == Unit::kEverywhere)
      loads[static_cast<size_t>(device)] += load(unit);
}

/// Places a unit on the device with the least load that has room. A separated
/// table stays on its devices if it can, which leaves others to the tables it
/// is separated from.
bool FormPlacer::placePiece(SearchState &state, size_t index,
                            std::span<const int> devices) {
  const Unit &unit = *state.units()[index];
  bool separated = isSeparated(context, unit);
  int best = -1;
  std::pair<bool, double> bestKey;
  for (int device : devices) {
    bool elsewhere =
        separated && !state.totals().separation().holds(device, unit);
    std::pair<bool, double> key(elsewhere, loadOf(device));
    if ((best >= 0 && key >= bestKey) || !state.fits(device, unit))
      continue;
    best = device;
    bestKey = key;
  }
  if (best < 0)
    return false;
  put(state, index, best);
  return true;
}

std::vector<const std::vector<int> *>
FormPlacer::groupsByLoad(const TableForm &form) const {
  std::vector<std::pair<double, const std::vector<int> *>> ranked;
  for (const std::vector<int> &group : form.groups) {
    double sum = 0;
    for (int device : group)
      sum += loadOf(device);
    ranked.emplace_back(sum, &group);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto &a, auto &b) { return a.first < b.first; });
  std::vector<const std::vector<int> *> groups;
  for (const auto &[sum, group] : ranked)
    groups.push_back(group);
  return groups;
}

bool FormPlacer::placeInOneGroup(SearchState &state, size_t form) {
  size_t first = firstPiece[form], count = forms[form]->units.size();
  for (const std::vector<int> *group : groupsByLoad(*forms[form])) {
    std::vector<double> before = loads;
    size_t placed = 0;
    while (placed < count && placePiece(state, first + placed, *group))
      ++placed;
    if (placed == count)
      return true;
    while (placed > 0)
      state.remove(first + --placed);
    loads = std::move(before);
  }
  return false;
}

/// Places a row block on each device of the first group that has room for all.
bool FormPlacer::placeByRows(SearchState &state, size_t index,
                             const TableForm &form) {
  UnitPtr piece = state.units()[index];
  for (const std::vector<int> *group : groupsByLoad(form)) {
    std::vector<UnitPtr> blocks = blocksOf(context, *piece, group->size());
    bool room = true;
    for (size_t i = 0; i < blocks.size() && room; ++i)
      room = state.fits((*group)[i], *blocks[i]);
    if (!room)
      continue;
    std::vector<size_t> indices = state.replace(index, blocks);
    for (size_t i = 0; i < indices.size(); ++i)
      put(state, indices[i], (*group)[i]);
    return true;
  }
  return false;
}

bool FormPlacer::placeForm(SearchState &state, size_t form, UnitPtr &blocking) {
  const TableForm &source = *forms[form];
  size_t first = firstPiece[form];
  blocking = source.units.front();
  if (source.kind == FormKind::TableColumnWise)
    return placeInOneGroup(state, form);
  for (size_t i = 0; i < source.units.size(); ++i) {
    if (state.deviceOf(first + i) != SearchState::kUnplaced)
      continue;
    if (!(source.cutsRows() ? placeByRows(state, first + i, source)
                            : placePiece(state, first + i, all)))
      return false;
  }
  return true;
}

std::optional<SearchState>
FormPlacer::run(const std::function<double(const TableForm &)> &key,
                UnitPtr &blocking) {
  std::vector<UnitPtr> units;
  for (const TableForm *form : forms) {
    firstPiece.push_back(units.size());
    units.insert(units.end(), form->units.begin(), form->units.end());
  }
  all.resize(static_cast<size_t>(context.deviceCount));
  std::iota(all.begin(), all.end(), 0);
  // Places replicas and shards written by hand.
  SearchState state(context, units);
  if (!state.withinMemory())
    return std::nullopt;
  for (size_t i = 0; i < units.size(); ++i)
    addPlaced(state.deviceOf(i), *units[i]);
  for (size_t form : orderBy(key))
    if (!placeForm(state, form, blocking))
      return std::nullopt;
  blocking = nullptr;
  return state;
}

} // namespace

std::optional<SearchState> neuroshard::placeForms(
    const SearchContext &context, std::span<const TableForm *const> forms,
    const std::function<double(const TableForm &)> &key,
    const std::function<double(const Unit &)> &load, UnitPtr &blocking) {
  return FormPlacer(context, forms, load).run(key, blocking);
}
