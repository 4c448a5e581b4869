//===- IdTranslation.h - Ids of a batch become rows -------------*- C++ -*-===//
//
// Each distinct id goes to the rank that owns its part of the map, and comes
// back as a row. Ranks that hold a part of a row that has another id now are
// told of it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDTRANSLATION_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDTRANSLATION_H

#include "Ids/DistinctIds.h"
#include "Ids/IdExchange.h"
#include "Ids/IdOwner.h"
#include "neuroshard/Artifact/ExchangePlan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// What a rank does in a step.
enum class StepState { Failed, Lookup, Training };

struct DynamicTable {
  int64_t sharedRow = 0;
  std::vector<size_t> readers; ///< features, ascending.
  /// By rank, the rows that it has shards of: ranges apart from each other.
  std::vector<std::vector<Range>> held;
};

struct IdRefusal {
  int64_t rank, table, id;
};

/// What the ranks have said of a batch.
struct TranslatedBatch {
  std::vector<StepState> states; ///< by rank.
  /// By table, rows held here that have other ids now; none if states differ.
  std::vector<std::vector<NewRow>> anew;
  std::optional<IdRefusal> refusal; ///< that of the first rank.
};

class IdTranslation {
public:
  IdTranslation(std::shared_ptr<IdExchange> exchange,
                std::vector<DynamicTable> tables);

  struct Batch {
    std::span<const int64_t> ids;    ///< of all features, one after the other.
    std::span<const int64_t> counts; ///< of ids, by feature; none if failed.
    StepState state = StepState::Failed;
    int64_t lookup = 0, firstHeld = 0; ///< as of IdOwner::train.
  };

  /// Puts rows in the place of ids. Static ids stay; where a rank has failed,
  /// or states differ, dynamic ones become the shared rows. `owners`: this
  /// rank's, by table. All ranks call it together.
  TranslatedBatch translate(const std::vector<IdOwner *> &owners,
                            const Batch &batch, std::span<int64_t> rows);

private:
  using Owners = std::vector<IdOwner *>;

  void ask(const Batch &batch);
  /// The ids of a table's features, valid until the next call.
  std::span<const int64_t> gather(const DynamicTable &table,
                                  const Batch &batch);
  void answer(const Owners &owners, const Batch &batch);
  void tellHolders(size_t table, const std::vector<NewRow> &admitted);
  void swap(IdExchange::Use use, std::vector<IdMessage> &received);
  void take(TranslatedBatch &result, const Batch &batch, bool areFound,
            std::span<int64_t> rows);
  void readAnswers(TranslatedBatch &result);
  void place(const Batch &batch, bool areFound, std::span<int64_t> rows) const;

  /// The same for all messages of a table.
  bool isNarrow(size_t table) const;

  std::shared_ptr<IdExchange> exchange;
  std::vector<DynamicTable> tables;
  // Of a batch; kept so that memory is.
  std::vector<int64_t> ids;
  std::vector<DistinctFinder> finders;             ///< by table.
  std::vector<const DistinctIds *> distinct;       ///< by table.
  std::vector<std::vector<int64_t>> found;         ///< rows of distinct ids.
  std::vector<IdMessage> sent, questions, answers; ///< by rank.
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDTRANSLATION_H
