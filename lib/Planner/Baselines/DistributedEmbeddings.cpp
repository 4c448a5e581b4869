//===- DistributedEmbeddings.cpp - Planner of distributed-embeddings ------===//
///
/// \file
/// The rules of NVIDIA's distributed-embeddings: tables up to one number of
/// elements are replicated, tables from another number on are cut by rows over
/// all devices, and those in between are cut by columns into the smallest power
/// of two of slices that are not above a third number. The library leaves the
/// thresholds to the user. Here a small grid of them is tried, as shares of a
/// device's part of all elements, with the slices balanced by size or by
/// lookups.
//===----------------------------------------------------------------------===//

#include "Baselines.h"
#include "Forms/TableForms.h"
#include "Units/SearchThreads.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <cstdio>
#include <limits>

using namespace neuroshard;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Thresholds, as multiples of a mean device's number of elements.
constexpr double kReplicateUpTo[] = {0, 1e-4, 1e-3};
constexpr double kRowsFrom[] = {kNever, 2, 1, 0.5};
constexpr double kSliceUpTo[] = {kNever, 1, 0.5, 0.25, 0.125};

enum class Balanced { Size, Lookups };

struct Thresholds {
  double replicateUpTo = 0;
  double rowsFrom = kNever;
  double sliceUpTo = kNever;
  Balanced balanced = Balanced::Size;

  std::string str() const {
    char text[200];
    std::snprintf(text, sizeof text,
                  "in elements of a mean device: replicated up to %g, by rows "
                  "from %g, column slices up to %g; balanced by %s",
                  replicateUpTo, rowsFrom, sliceUpTo,
                  balanced == Balanced::Size ? "size" : "lookups");
    return text;
  }
};

std::vector<Thresholds> allThresholds() {
  std::vector<Thresholds> all;
  for (double replicate : kReplicateUpTo)
    for (double rows : kRowsFrom)
      for (double slice : kSliceUpTo)
        for (Balanced balanced : {Balanced::Size, Balanced::Lookups})
          all.push_back({replicate, rows, slice, balanced});
  return all;
}

double elementsOf(const Shard &shard) {
  return static_cast<double>(shard.rows()) * static_cast<double>(shard.width());
}

/// Sum over the unit's shards of elements, or of lookups x width.
double weightOf(const Unit &unit, Balanced balanced) {
  double sum = 0;
  for (size_t i = 0; i < unit.shards.size(); ++i)
    sum += balanced == Balanced::Size
               ? elementsOf(unit.shards[i])
               : unit.works[i].lookups *
                     static_cast<double>(unit.shards[i].width());
  return sum;
}

class DistributedEmbeddings {
public:
  DistributedEmbeddings(const SearchContext &context,
                        const std::vector<UnitPtr> &units)
      : context(context), entries(formEntries(context, units)) {
    for (const Table &table : context.problem.tables)
      deviceElements += static_cast<double>(table.rows) *
                        static_cast<double>(table.dim) / context.deviceCount;
  }

  SearchOutcome run();

private:
  TableForm formOf(const FormEntry &entry, const Thresholds &thresholds) const;
  std::optional<TableForm> slices(int table, double elements,
                                  double limit) const;
  std::optional<SearchState> place(const Thresholds &thresholds,
                                   UnitPtr &blocking) const;

  const SearchContext &context;
  std::vector<FormEntry> entries;
  double deviceElements = 0;
};

/// The column form with the smallest power of two of slices that are not above
/// the limit: no more than devices, and fewer where the table is too narrow.
std::optional<TableForm>
DistributedEmbeddings::slices(int table, double elements, double limit) const {
  int64_t parts = 1;
  while (elements / static_cast<double>(parts) > limit &&
         parts < context.deviceCount)
    parts *= 2;
  parts = std::min<int64_t>(parts, context.deviceCount);
  int64_t dim = context.table(table).dim;
  for (; parts > 1; parts /= 2) {
    int64_t groups = ceilDivide(dim, kColumnAlignment);
    int64_t width = ceilDivide(groups, parts) * kColumnAlignment;
    if (auto form = makeForm(context, table, FormKind::ColumnWise, width))
      return form;
  }
  return std::nullopt;
}

/// The form that the thresholds ask for, or the next one that the rules and the
/// target allow.
TableForm DistributedEmbeddings::formOf(const FormEntry &entry,
                                        const Thresholds &thresholds) const {
  if (entry.table < 0)
    return entry.given;
  const Table &table = context.table(entry.table);
  double elements =
      static_cast<double>(table.rows) * static_cast<double>(table.dim);
  auto make = [&](FormKind kind) {
    return makeForm(context, entry.table, kind, 0);
  };
  std::optional<TableForm> form;
  if (elements <= thresholds.replicateUpTo * deviceElements)
    form = make(FormKind::Replicated);
  else if (elements >= thresholds.rowsFrom * deviceElements)
    form = make(FormKind::RowWise);
  if (!form)
    form = slices(entry.table, elements, thresholds.sliceUpTo * deviceElements);
  if (!form)
    form = make(FormKind::TableWise);
  return form ? *form : entry.given;
}

std::optional<SearchState>
DistributedEmbeddings::place(const Thresholds &thresholds,
                             UnitPtr &blocking) const {
  std::vector<TableForm> forms;
  for (const FormEntry &entry : entries)
    forms.push_back(formOf(entry, thresholds));
  std::vector<const TableForm *> pointers;
  for (const TableForm &form : forms)
    pointers.push_back(&form);
  auto weight = [&](const Unit &unit) {
    return weightOf(unit, thresholds.balanced);
  };
  auto key = [&](const TableForm &form) { return weight(*form.units.front()); };
  return placeForms(context, pointers, key, weight, blocking);
}

SearchOutcome DistributedEmbeddings::run() {
  std::vector<Thresholds> all = allThresholds();
  std::vector<UnitPtr> blocking(all.size());
  std::vector<double> costsMs(all.size(), kNever);
  context.pool().forEach(all.size(), [&](size_t i) {
    if (context.deadlinePassed() && i > 0)
      return;
    if (auto state = place(all[i], blocking[i]))
      costsMs[i] = state->costMs();
  });
  SearchOutcome outcome;
  outcome.evaluations = static_cast<int64_t>(all.size());
  outcome.stopReason =
      std::to_string(all.size()) + " combinations of thresholds tried";
  size_t best = static_cast<size_t>(
      std::min_element(costsMs.begin(), costsMs.end()) - costsMs.begin());
  if (costsMs[best] == kNever) {
    outcome.blocking = blocking[best];
    return outcome;
  }
  outcome.tried.push_back(all[best].str() + ": " + formatMs(costsMs[best]));
  outcome.state = place(all[best], outcome.blocking);
  return outcome;
}

} // namespace

SearchOutcome
neuroshard::searchDistributedEmbeddings(const SearchContext &context,
                                        const std::vector<UnitPtr> &units) {
  return DistributedEmbeddings(context, units).run();
}
