//===- IdTranslation.cpp - Ids of a batch become rows ---------------------===//
//
// A question's head: the state of the rank, then by table how many ids it asks
// for, which are the values. An answer's: the first table that refuses an id,
// or kNone; the id; by table how many rows begin anew. Its values are the rows
// of the ids by table, and after those of each table (row, id) that begin anew.
//
//===----------------------------------------------------------------------===//

#include "Ids/IdTranslation.h"

#include "neuroshard/Artifact/IdMapSpans.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace neuroshard::runtime {
namespace {

constexpr int64_t kNone = -1;
constexpr size_t kQuestionCounts = 1, kAnswerCounts = 2;

using Numbers = std::vector<int64_t>;

void append(Numbers &to, std::span<const int64_t> values) {
  to.insert(to.end(), values.begin(), values.end());
}

/// Takes values from the front.
std::span<const int64_t> takeFront(std::span<const int64_t> &values,
                                   int64_t count) {
  std::span<const int64_t> front = values.first(static_cast<size_t>(count));
  values = values.subspan(front.size());
  return front;
}

/// Two rows to a number.
void appendNarrow(Numbers &to, std::span<const int64_t> rows) {
  size_t before = to.size();
  to.resize(before + (rows.size() + 1) / 2);
  auto *place = reinterpret_cast<std::byte *>(to.data() + before);
  for (size_t i = 0; i < rows.size(); ++i) {
    auto narrow = static_cast<int32_t>(rows[i]);
    std::memcpy(place + i * sizeof(narrow), &narrow, sizeof(narrow));
  }
}

void appendWide(Numbers &to, std::span<const int64_t> packed, int64_t count) {
  size_t before = to.size();
  to.resize(before + static_cast<size_t>(count));
  const auto *place = reinterpret_cast<const std::byte *>(packed.data());
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    int32_t narrow;
    std::memcpy(&narrow, place + i * sizeof(narrow), sizeof(narrow));
    to[before + i] = narrow;
  }
}

/// A span of torch's traces while it lives.
class Span {
public:
  explicit Span(const std::string &name) : record(at::RecordScope::USER_SCOPE) {
    if (record.isActive())
      record.before(name.c_str());
  }

private:
  at::RecordFunction record;
};

const std::string kExchangeSpan = idMapsSpan(kIdMapsExchange);
const std::string kLookUpSpan = idMapsSpan(kIdMapsLookUp);

bool isIn(std::span<const Range> ranges, int64_t row) {
  return std::ranges::any_of(ranges, [&](const Range &range) {
    return row >= range.begin && row < range.end;
  });
}

} // namespace

IdTranslation::IdTranslation(std::shared_ptr<IdExchange> idExchange,
                             std::vector<DynamicTable> dynamicTables)
    : exchange(std::move(idExchange)), tables(std::move(dynamicTables)),
      finders(tables.size()), distinct(tables.size()), found(tables.size()),
      sent(static_cast<size_t>(exchange->ranks())) {}

bool IdTranslation::isNarrow(size_t table) const {
  return tables[table].sharedRow <= std::numeric_limits<int32_t>::max();
}

TranslatedBatch IdTranslation::translate(const Owners &owners,
                                         const Batch &batch,
                                         std::span<int64_t> rows) {
  TranslatedBatch result;
  result.anew.resize(tables.size());
  ask(batch);
  swap(IdExchange::Questions, questions);
  for (const IdMessage &question : questions)
    result.states.push_back(static_cast<StepState>(question.head.front()));
  bool areAlike = std::ranges::all_of(result.states, [&](StepState state) {
    return state != StepState::Failed && state == result.states.front();
  });
  if (areAlike) {
    answer(owners, batch);
    swap(IdExchange::Answers, answers);
  }
  take(result, batch, areAlike, rows);
  return result;
}

void IdTranslation::swap(IdExchange::Use use,
                         std::vector<IdMessage> &received) {
  Span span(kExchangeSpan);
  exchange->swap(use, sent, received);
}

std::span<const int64_t> IdTranslation::gather(const DynamicTable &table,
                                               const Batch &batch) {
  if (batch.state == StepState::Failed)
    return {};
  ids.clear();
  size_t feature = 0;
  std::span<const int64_t> rest = batch.ids;
  for (size_t reader : table.readers) {
    while (feature < reader)
      takeFront(rest, batch.counts[feature++]);
    std::span<const int64_t> own = takeFront(rest, batch.counts[feature++]);
    if (table.readers.size() == 1)
      return own;
    append(ids, own);
  }
  return ids;
}

void IdTranslation::ask(const Batch &batch) {
  Span span(kLookUpSpan);
  for (IdMessage &message : sent) {
    message.head = {static_cast<int64_t>(batch.state)};
    message.values.clear();
  }
  for (size_t t = 0; t < tables.size(); ++t) {
    distinct[t] = &finders[t].find(gather(tables[t], batch), exchange->ranks());
    std::span<const int64_t> asked = distinct[t]->ids;
    for (size_t rank = 0; rank < sent.size(); ++rank) {
      int64_t count = distinct[t]->counts[rank];
      sent[rank].head.push_back(count);
      append(sent[rank].values, takeFront(asked, count));
    }
  }
}

void IdTranslation::answer(const Owners &owners, const Batch &batch) {
  Span span(kLookUpSpan);
  for (IdMessage &message : sent) {
    message.head = {kNone, 0};
    message.values.clear();
  }
  std::vector<std::span<const int64_t>> asked;
  for (const IdMessage &question : questions)
    asked.emplace_back(question.values);
  for (size_t t = 0; t < tables.size(); ++t) {
    ids.clear();
    for (size_t rank = 0; rank < sent.size(); ++rank)
      append(ids,
             takeFront(asked[rank], questions[rank].head[kQuestionCounts + t]));
    const Translated &translated =
        batch.state == StepState::Training
            ? owners[t]->train(ids, batch.lookup, batch.firstHeld)
            : owners[t]->find(ids, batch.lookup);
    std::span<const int64_t> rows = translated.rows;
    for (size_t rank = 0; rank < sent.size(); ++rank) {
      std::span<const int64_t> own =
          takeFront(rows, questions[rank].head[kQuestionCounts + t]);
      isNarrow(t) ? appendNarrow(sent[rank].values, own)
                  : append(sent[rank].values, own);
      if (translated.refused && sent[rank].head[0] == kNone) {
        sent[rank].head[0] = static_cast<int64_t>(t);
        sent[rank].head[1] = *translated.refused;
      }
    }
    tellHolders(t, translated.admitted);
  }
}

void IdTranslation::tellHolders(size_t table,
                                const std::vector<NewRow> &admitted) {
  for (size_t rank = 0; rank < sent.size(); ++rank) {
    IdMessage &message = sent[rank];
    int64_t told = 0;
    for (const NewRow &one : admitted)
      if (isIn(tables[table].held[rank], one.row)) {
        message.values.push_back(one.row);
        message.values.push_back(one.id);
        ++told;
      }
    message.head.push_back(told);
  }
}

void IdTranslation::take(TranslatedBatch &result, const Batch &batch,
                         bool areFound, std::span<int64_t> rows) {
  Span span(kLookUpSpan);
  if (areFound)
    readAnswers(result);
  if (batch.state != StepState::Failed)
    place(batch, areFound, rows);
}

void IdTranslation::readAnswers(TranslatedBatch &result) {
  for (Numbers &rows : found)
    rows.clear();
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    const Numbers &head = answers[rank].head;
    std::span<const int64_t> rest = answers[rank].values;
    for (size_t t = 0; t < tables.size(); ++t) {
      int64_t count = distinct[t]->counts[rank];
      if (isNarrow(t))
        appendWide(found[t], takeFront(rest, (count + 1) / 2), count);
      else
        append(found[t], takeFront(rest, count));
      for (int64_t i = 0; i < head[kAnswerCounts + t]; ++i) {
        std::span<const int64_t> pair = takeFront(rest, 2);
        result.anew[t].push_back({pair[0], pair[1]});
      }
    }
    if (head[0] != kNone && !result.refusal)
      result.refusal = {static_cast<int64_t>(rank), head[0], head[1]};
  }
}

void IdTranslation::place(const Batch &batch, bool areFound,
                          std::span<int64_t> rows) const {
  std::ranges::copy(batch.ids, rows.begin());
  for (size_t t = 0; t < tables.size(); ++t) {
    const int32_t *next = distinct[t]->places.data();
    size_t feature = 0, begin = 0;
    for (size_t reader : tables[t].readers) {
      for (; feature < reader; ++feature)
        begin += static_cast<size_t>(batch.counts[feature]);
      auto count = static_cast<size_t>(batch.counts[reader]);
      for (int64_t &row : rows.subspan(begin, count))
        row = areFound ? found[t][static_cast<size_t>(*next++)]
                       : tables[t].sharedRow;
    }
  }
}

} // namespace neuroshard::runtime
