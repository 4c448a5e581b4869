//===- IdExchange.h - Numbers from each rank to each other ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDEXCHANGE_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDEXCHANGE_H

#include "Group/MappedAhead.h"
#include "Group/PeerMessages.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace neuroshard::runtime {

/// A head, of one length on all ranks, and any number of values.
struct IdMessage {
  std::vector<int64_t> head;
  std::vector<int64_t> values;
};

/// All-to-alls of i64 on the CPU, over a watched process group that carries
/// nothing else. All ranks make them in one order. Throws torch's
/// DistBackendError with the group's cause if it ends.
class IdExchange {
public:
  /// What messages with heads are for; each has sizes of its own.
  enum Use { Questions, Answers, kNumUses };

  /// "": there is one rank.
  explicit IdExchange(const std::string &groupName);

  int32_t ranks() const { return size; }
  /// Null: there is one rank.
  MappedAhead *ahead() { return mappedAhead ? &*mappedAhead : nullptr; }

  /// `sent` and `taken`: how many values go to each rank, and come from it;
  /// those of rank 0 come first.
  at::Tensor split(const at::Tensor &values, std::span<const int64_t> sent,
                   std::span<const int64_t> taken);

  /// `sent`: a message for each rank. `received`: those of all ranks for this
  /// one. In one exchange where a message has room for all values: how much,
  /// both ranks know from the message before of this use, so that its receive
  /// waits for it since then. Others follow in a message of their own.
  void swap(Use use, const std::vector<IdMessage> &sent,
            std::vector<IdMessage> &received);

private:
  using Counts = std::vector<int64_t>;
  /// Memory of messages, which is kept for the next as soon as nobody has it.
  class KeptBuffer : public BufferSource {
  public:
    Buffer acquire(BufferKind, int64_t bytes) override { return take(bytes); }
    Buffer take(int64_t bytes) override;

  private:
    Buffer memory;
    int64_t size = 0;
  };
  /// The numbers of a message that go from one rank to another.
  struct Rooms {
    Counts sent, received; ///< by rank.
  };

  /// Number of values, head, values up to `room`.
  at::Tensor pack(const IdMessage &message, int64_t room, KeptBuffer &memory);
  /// Makes the receives of the next message of a use.
  void expect(Use use, int64_t head);
  using Take = std::function<void(size_t, std::span<const int64_t>)>;
  /// Gives what comes from each rank to `take`, one after the other.
  void exchange(MessageKind kind, const std::vector<at::Tensor> &sent,
                std::span<const int64_t> received, const Take &take);
  /// The same once receives are made.
  void exchange(std::unique_ptr<PeerRequest> request,
                const std::vector<at::Tensor> &sent, const Take &take);
  /// Throws a DistBackendError in place of what `function` throws.
  template <typename Function> void withCause(const Function &function);

  std::string name;
  int32_t size = 1;
  std::shared_ptr<GroupWatch> watch;
  std::vector<KeptBuffer> sendMemory; ///< by rank.
  std::array<KeptBuffer, kNumUses> receiveMemory;
  KeptBuffer restMemory;
  std::optional<PeerMessages> messages; ///< none on one rank.
  std::array<Rooms, kNumUses> rooms;    ///< of the next messages.
  std::array<std::unique_ptr<PeerRequest>, kNumUses> expected; ///< these.
  std::optional<MappedAhead> mappedAhead;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDEXCHANGE_H
