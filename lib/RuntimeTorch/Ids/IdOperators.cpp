//===- IdOperators.cpp - The map of a table's ids, for Python -------------===//
//
// torch.classes.neuroshard.IdOwner, and torch.ops.neuroshard.distinct_ids and
// owners_of_ids. All tensors are i64 on the CPU.
//
//===----------------------------------------------------------------------===//

#include "Ids/DistinctIds.h"
#include "Ids/IdHash.h"
#include "Ids/IdOwner.h"

#include <ATen/ops/empty.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <tuple>
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

// An IdEntry in a tensor is a row of its five fields.
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
    entries.push_back({values[i], values[i + 1], values[i + 2], values[i + 3],
                       values[i + 4]});
  return entries;
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
      : owner({valuesOf(rows).begin(), valuesOf(rows).end()},
              {admitAfter, evictByOf(evictBy), whenFullOf(whenFull), sharedRow,
               candidates}) {}

  /// Rows; rows with new ids; these ids; the refused id, if there is one.
  std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
  train(const at::Tensor &ids, int64_t lookup, int64_t firstHeld) {
    Translated result = owner.train(valuesOf(ids), lookup, firstHeld);
    Rows rows, newIds, refused;
    for (const NewRow &one : result.admitted) {
      rows.push_back(one.row);
      newIds.push_back(one.id);
    }
    if (result.refused)
      refused.push_back(*result.refused);
    return {tensorOf(result.rows), tensorOf(rows), tensorOf(newIds),
            tensorOf(refused)};
  }

  at::Tensor find(const at::Tensor &ids, int64_t lookup) {
    return tensorOf(owner.find(valuesOf(ids), lookup));
  }

  Rows figures() const {
    const IdFigures &sums = owner.figures();
    return {
        owner.map().size(), owner.map().capacity(), owner.candidates().size(),
        sums.admitted,      sums.evicted,           sums.refused,
        sums.forgotten,     owner.bytes()};
  }

  at::Tensor entries() const { return tensorOf(owner.map().slots()); }
  at::Tensor candidates() const { return tensorOf(owner.candidates().slots()); }
  int64_t batches() const { return owner.batches(); }
  void restore(const at::Tensor &saved, const at::Tensor &candidates,
               int64_t batches) {
    owner.restore(entriesOf(saved), entriesOf(candidates), batches);
  }

  IdOwner owner;
};

/// The distinct ids, by owner; where each id of the batch is among them; how
/// many each owner has.
std::tuple<at::Tensor, at::Tensor, Rows> distinctIds(const at::Tensor &ids,
                                                     int64_t ranks) {
  DistinctIds found = findDistinct(valuesOf(ids), static_cast<int32_t>(ranks));
  return {tensorOf(found.ids), tensorOf(found.places), std::move(found.counts)};
}

at::Tensor ownersOfIds(const at::Tensor &ids, int64_t ranks) {
  Rows owners;
  for (int64_t id : valuesOf(ids))
    owners.push_back(ownerOfId(id, static_cast<int32_t>(ranks)));
  return tensorOf(owners);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(neuroshard, m) {
  m.def("distinct_ids(Tensor ids, int ranks) -> (Tensor, Tensor, int[])",
        &distinctIds);
  m.def("owners_of_ids(Tensor ids, int ranks) -> Tensor", &ownersOfIds);
  m.class_<OwnerOfPython>("IdOwner")
      .def(torch::init<const at::Tensor &, int64_t, const std::string &,
                       const std::string &, int64_t, int64_t>())
      .def("train", &OwnerOfPython::train)
      .def("find", &OwnerOfPython::find)
      .def("figures", &OwnerOfPython::figures)
      .def("entries", &OwnerOfPython::entries)
      .def("candidates", &OwnerOfPython::candidates)
      .def("batches", &OwnerOfPython::batches)
      .def("restore", &OwnerOfPython::restore);
}
