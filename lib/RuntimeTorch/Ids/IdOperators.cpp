//===- IdOperators.cpp - The map of a table's ids, for Python -------------===//
//
// torch.classes.neuroshard.IdOwner, IdExchange and IdTranslation, and
// torch.ops.neuroshard.owners_of_ids. All tensors are i64 on the CPU.
//
//===----------------------------------------------------------------------===//

#include "Ids/IdHash.h"
#include "Ids/IdTranslation.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <algorithm>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <utility>

using namespace neuroshard::runtime;

namespace {

using Rows = std::vector<int64_t>;

std::span<const int64_t> valuesOf(const at::Tensor &tensor) {
  TORCH_CHECK_VALUE(tensor.device().is_cpu() &&
                        tensor.scalar_type() == at::kLong &&
                        tensor.is_contiguous(),
                    "expected a contiguous tensor of torch.int64 on the CPU");
  return {tensor.const_data_ptr<int64_t>(),
          static_cast<size_t>(tensor.numel())};
}

at::Tensor tensorOf(std::span<const int64_t> values) {
  at::Tensor tensor =
      at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::ranges::copy(values, tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

// An IdEntry in a tensor is a row of five fields: id, row, count, last, since.
constexpr int64_t kFields = 5;

at::Tensor tensorOf(const std::vector<IdEntry> &entries) {
  at::Tensor tensor =
      at::empty({static_cast<int64_t>(entries.size()), kFields}, at::kLong);
  int64_t *to = tensor.mutable_data_ptr<int64_t>();
  for (const IdEntry &one : entries)
    for (int64_t value : {one.id, one.row, one.count, one.last, one.since})
      *to++ = value;
  return tensor;
}

std::vector<IdEntry> entriesOf(const at::Tensor &tensor) {
  std::span<const int64_t> values = valuesOf(tensor);
  std::vector<IdEntry> entries;
  for (size_t i = 0; i + kFields <= values.size(); i += kFields)
    entries.push_back({.row = values[i + 1],
                       .count = values[i + 2],
                       .last = values[i + 3],
                       .id = values[i],
                       .since = values[i + 4]});
  return entries;
}

int64_t numUsed(const std::vector<IdEntry> &entries) {
  return std::ranges::count_if(entries, &IdEntry::isUsed);
}

EvictBy evictByOf(const std::string &name) {
  if (name == "lru")
    return EvictBy::Recency;
  TORCH_CHECK_VALUE(name == "lfu" || name == "age", "evict_by: ", name);
  return name == "lfu" ? EvictBy::Frequency : EvictBy::Age;
}

WhenFull whenFullOf(const std::string &name) {
  if (name == "evict")
    return WhenFull::Evict;
  TORCH_CHECK_VALUE(name == "share" || name == "refuse", "when_full: ", name);
  return name == "share" ? WhenFull::Share : WhenFull::Refuse;
}

/// IdOwner with tensors.
struct OwnerOfPython : torch::CustomClassHolder {
  OwnerOfPython(const at::Tensor &rows, int64_t admitAfter,
                const std::string &evictBy, const std::string &whenFull,
                int64_t sharedRow, int64_t candidates)
      : policy{admitAfter, evictByOf(evictBy), whenFullOf(whenFull), sharedRow,
               candidates} {
    deal(rows);
  }

  /// Begins anew with these rows, all free.
  void deal(const at::Tensor &rows) {
    std::span<const int64_t> given = valuesOf(rows);
    owner = std::make_unique<IdOwner>(Rows(given.begin(), given.end()), policy);
  }

  Rows figures() const {
    IdFigures sums = owner->figures();
    return {numUsed(owner->entriesBefore()),
            owner->map().capacity(),
            numUsed(owner->candidatesBefore()),
            sums.admitted,
            sums.evicted,
            sums.refused,
            sums.forgotten,
            owner->bytes()};
  }

  at::Tensor entries() const { return tensorOf(owner->entriesBefore()); }
  at::Tensor candidates() const { return tensorOf(owner->candidatesBefore()); }
  int64_t batches() const { return owner->batches(); }
  void restore(const at::Tensor &saved, const at::Tensor &candidates,
               int64_t batches) {
    owner->restore(entriesOf(saved), entriesOf(candidates), batches);
  }

  IdPolicy policy;
  std::unique_ptr<IdOwner> owner;
};

/// IdExchange with tensors.
struct ExchangeOfPython : torch::CustomClassHolder {
  explicit ExchangeOfPython(const std::string &group)
      : exchange(std::make_shared<IdExchange>(group)) {}

  at::Tensor split(const at::Tensor &values, const Rows &sent,
                   const Rows &taken) {
    return exchange->split(values, sent, taken);
  }

  std::shared_ptr<IdExchange> exchange;
};

/// IdTranslation with tensors, for which a step's call takes less time than for
/// lists of objects or pairs.
struct TranslationOfPython : torch::CustomClassHolder {
  using Owners = std::vector<c10::intrusive_ptr<OwnerOfPython>>;

  /// By table: `owners`, this rank's; `readers`, the features; `held`, of each
  /// rank, the begins and ends of ranges of rows.
  TranslationOfPython(const c10::intrusive_ptr<ExchangeOfPython> &exchange,
                      Owners owners, const std::vector<Rows> &readers,
                      const std::vector<std::vector<Rows>> &held)
      : exchange(exchange->exchange), owners(std::move(owners)),
        translation(exchange->exchange, tablesOf(this->owners, readers, held)) {
  }

  static std::vector<DynamicTable>
  tablesOf(const Owners &owners, const std::vector<Rows> &readers,
           const std::vector<std::vector<Rows>> &held) {
    std::vector<DynamicTable> tables;
    for (size_t t = 0; t < owners.size(); ++t) {
      DynamicTable &table = tables.emplace_back();
      table.sharedRow = owners[t]->policy.sharedRow;
      table.readers.assign(readers[t].begin(), readers[t].end());
      for (const Rows &ofRank : held[t]) {
        auto &ranges = table.held.emplace_back();
        for (size_t i = 0; i + 1 < ofRank.size(); i += 2)
          ranges.push_back({ofRank[i], ofRank[i + 1]});
      }
    }
    return tables;
  }

  /// Rows in place of ids; the states of all ranks, and after them, if there is
  /// a refusal, its rank, table and id; then for each table the rows that begin
  /// anew, and their ids.
  using Result = std::vector<at::Tensor>;

  Result translate(const at::Tensor &ids, const Rows &counts, int64_t state,
                   int64_t lookup, int64_t firstHeld) {
    std::vector<IdOwner *> native;
    for (const auto &one : owners)
      native.push_back(one->owner.get());
    at::Tensor rows = at::empty_like(ids);
    TranslatedBatch batch = translation.translate(
        native,
        {valuesOf(ids), counts, static_cast<StepState>(state), lookup,
         firstHeld},
        {rows.mutable_data_ptr<int64_t>(), static_cast<size_t>(rows.numel())});
    return resultOf(rows, batch);
  }

  /// The same in another thread, after those that were begun before; finish()
  /// gives the result. Steps before this lookup are over by then.
  void begin(const at::Tensor &ids, const Rows &counts, int64_t state,
             int64_t lookup) {
    std::shared_future<Result> before;
    if (!ahead.empty())
      before = ahead.back();
    ahead.push_back(std::async(std::launch::async, [=, this] {
      if (before.valid())
        before.get();
      for (const auto &one : owners)
        one->owner->beginAhead();
      return translate(ids, counts, state, lookup, lookup);
    }));
  }

  Result finish() {
    TORCH_CHECK_VALUE(!ahead.empty(), "no ids are mapped ahead");
    std::shared_future<Result> first = ahead.front();
    ahead.pop_front();
    return first.get();
  }

  /// The step of the first lookup that was begun has begun.
  void keep(int64_t lookup) {
    if (MappedAhead *others = exchange->ahead())
      others->keep(lookup);
    for (const auto &one : owners)
      one->owner->keepAhead();
  }

  /// Undoes what was begun and not kept, from a lookup on. `tells`: ranks that
  /// have kept it end the group.
  void recall(int64_t lookup, bool tells) {
    if (MappedAhead *others = exchange->ahead())
      others->drop(lookup, tells);
    for (const auto &one : ahead)
      one.wait();
    ahead.clear();
    for (const auto &one : owners)
      one->owner->undoAhead();
  }

  static Result resultOf(const at::Tensor &rows, const TranslatedBatch &batch) {
    Rows report;
    for (StepState one : batch.states)
      report.push_back(static_cast<int64_t>(one));
    if (batch.refusal)
      for (int64_t one :
           {batch.refusal->rank, batch.refusal->table, batch.refusal->id})
        report.push_back(one);
    Result result{rows, tensorOf(std::span<const int64_t>(report))};
    for (const std::vector<NewRow> &ofTable : batch.anew) {
      Rows newRows, newIds;
      for (const NewRow &one : ofTable) {
        newRows.push_back(one.row);
        newIds.push_back(one.id);
      }
      result.push_back(tensorOf(std::span<const int64_t>(newRows)));
      result.push_back(tensorOf(std::span<const int64_t>(newIds)));
    }
    return result;
  }

  std::shared_ptr<IdExchange> exchange;
  Owners owners; ///< by table.
  IdTranslation translation;
  std::deque<std::shared_future<Result>> ahead; ///< in their order.
};

at::Tensor ownersOfIds(const at::Tensor &ids, int64_t ranks) {
  Rows owners;
  for (int64_t id : valuesOf(ids))
    owners.push_back(ownerOfId(id, static_cast<int32_t>(ranks)));
  return tensorOf(owners);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(neuroshard, m) {
  m.def("owners_of_ids(Tensor ids, int ranks) -> Tensor", &ownersOfIds);
  m.class_<OwnerOfPython>("IdOwner")
      .def(torch::init<const at::Tensor &, int64_t, const std::string &,
                       const std::string &, int64_t, int64_t>())
      .def("deal", &OwnerOfPython::deal)
      .def("figures", &OwnerOfPython::figures)
      .def("entries", &OwnerOfPython::entries)
      .def("candidates", &OwnerOfPython::candidates)
      .def("batches", &OwnerOfPython::batches)
      .def("restore", &OwnerOfPython::restore);
  m.class_<ExchangeOfPython>("IdExchange")
      .def(torch::init<const std::string &>())
      .def("split", &ExchangeOfPython::split);
  m.class_<TranslationOfPython>("IdTranslation")
      .def(torch::init<const c10::intrusive_ptr<ExchangeOfPython> &,
                       TranslationOfPython::Owners, const std::vector<Rows> &,
                       const std::vector<std::vector<Rows>> &>())
      .def("translate", &TranslationOfPython::translate)
      .def("begin", &TranslationOfPython::begin)
      .def("finish", &TranslationOfPython::finish)
      .def("keep", &TranslationOfPython::keep)
      .def("recall", &TranslationOfPython::recall);
}
