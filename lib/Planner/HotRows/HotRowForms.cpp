//===- HotRowForms.cpp - Forms of a table with copied first rows ----------===//

#include "HotRowForms.h"

#include "neuroshard/Model/LookupShares.h"
#include "neuroshard/Model/RowLayout.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

HotRowForms::HotRowForms(const SearchContext &context, int table,
                         const std::vector<Shard> &given, int groupSize)
    : context(context), table(table), source(context.table(table)),
      given(given), groupSize(groupSize),
      isReplicated(isWholeOnAll(source, given.front(), context.deviceCount)) {
  if (!context.rulesOf(table).allows(ShardingKind::Replicated))
    return;
  int64_t least = context.memoryOf(0);
  for (int device = 1; device < context.deviceCount; ++device)
    least = std::min(least, context.memoryOf(device));
  int64_t most = std::min(
      source.rows - 1, least / paddedRowBytes(source.dim, source.elementType));
  for (const RowMassQuantile &point : source.access->rowMass) {
    auto rows = static_cast<int64_t>(
        std::llround(point.rowShare * static_cast<double>(source.rows)));
    if (rows > (hots.empty() ? 0 : hots.back()) && rows <= most)
      hots.push_back(rows);
  }
}

int64_t HotRowForms::rowOfShare(int64_t begin, double share) const {
  double all = lookupShareOfRows(source, begin, source.rows);
  int64_t low = begin, high = source.rows;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (lookupShareOfRows(source, begin, middle) < share * all)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Shard HotRowForms::makeShard(std::string suffix, int64_t begin,
                             int64_t end) const {
  Shard shard;
  shard.name = source.name + std::move(suffix);
  shard.table = source.name;
  shard.rowBegin = begin;
  shard.rowEnd = end;
  shard.colEnd = source.dim;
  shard.route = given.front().route;
  followRules(context.rulesOf(table), shard);
  return shard;
}

void HotRowForms::addHot(const HotRowForm &form,
                         std::vector<Shard> &shards) const {
  Shard shard = makeShard(form.hot < source.rows ? "_hot" : "", 0, form.hot);
  int first = form.perGroup ? form.copyIndex : 0;
  int step = form.perGroup ? groupSize : 1;
  for (int device = first; device < context.deviceCount; device += step)
    shard.devices.push_back(device);
  shards.push_back(std::move(shard));
}

bool HotRowForms::addCold(const HotRowForm &form,
                          std::vector<Shard> &shards) const {
  int64_t begin = form.hot;
  if (form.cold == ColdForm::Whole) {
    Shard &shard = shards.emplace_back(
        makeShard(form.hot > 0 ? "_cold" : "", begin, source.rows));
    shard.devices = {form.coldDevice};
    return true;
  }
  if (form.cold == ColdForm::Blocks) {
    for (int device = 0; device < context.deviceCount; ++device) {
      int64_t end =
          device + 1 == context.deviceCount
              ? source.rows
              : rowOfShare(form.hot, (device + 1.0) / context.deviceCount);
      if (end <= begin)
        return false;
      Shard &shard = shards.emplace_back(makeShard(
          (form.hot > 0 ? "_cold" : "_") + std::to_string(device), begin, end));
      shard.devices = {device};
      begin = end;
    }
    return true;
  }
  auto moved = [&](int64_t row) {
    double share = static_cast<double>(row) / static_cast<double>(source.rows);
    if (row == 0 || row == source.rows)
      return row == 0 ? form.hot : row;
    int64_t byLookups = rowOfShare(form.hot, share);
    int64_t byRows =
        form.hot + static_cast<int64_t>(std::llround(
                       share * static_cast<double>(source.rows - form.hot)));
    return form.cold == ColdForm::AsBefore  ? byLookups
           : form.cold == ColdForm::Between ? (byLookups + byRows) / 2
                                            : byRows;
  };
  for (const Shard &one : given) {
    Shard &shard = shards.emplace_back(one);
    shard.rowBegin = moved(one.rowBegin);
    shard.rowEnd = moved(one.rowEnd);
    if (shard.rows() <= 0)
      return false;
  }
  return true;
}

std::vector<Shard> HotRowForms::shardsOf(const HotRowForm &form) const {
  std::vector<Shard> shards;
  if (form.hot > 0)
    addHot(form, shards);
  if (form.hot < source.rows && !addCold(form, shards))
    return {};
  return shards;
}
