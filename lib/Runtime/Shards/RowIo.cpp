//===- RowIo.cpp - Many small reads and writes of a file ------------------===//

#include "RowIo.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifdef NEUROSHARD_LIBURING
#include <liburing.h>
#endif

namespace neuroshard::runtime {

namespace {

/// Disks reach their rate with about as many requests at a time.
constexpr unsigned kDepth = 128;
/// Requests that are waited for at a time: to wake for each takes longer where
/// other threads want the core.
constexpr unsigned kWaitedFor = 32;
constexpr int kThreads = 16;

const char *nameOf(IoDirection direction) {
  return direction == IoDirection::Read ? "read rows from" : "write rows to";
}

[[noreturn]] void failIo(IoDirection direction, int error) {
  fail("cannot ", nameOf(direction), " the file of a shard in tier ssd: ",
       error == 0 ? "the file ended" : std::strerror(error));
}

/// Takes `bytes` that have moved from the front of a range.
void advance(FileRange &range, int64_t bytes) {
  range.offset += bytes;
  range.bytes -= bytes;
  for (int i = 0; i < range.numParts; ++i) {
    iovec &part = range.parts[static_cast<size_t>(i)];
    auto taken = std::min<int64_t>(bytes, static_cast<int64_t>(part.iov_len));
    part.iov_base = static_cast<std::byte *>(part.iov_base) + taken;
    part.iov_len -= static_cast<size_t>(taken);
    bytes -= taken;
  }
}

/// Moves all of a range, waiting for it.
void runOne(int file, IoDirection direction, FileRange &range) {
  while (range.bytes > 0) {
    ssize_t moved =
        direction == IoDirection::Read
            ? preadv(file, range.parts.data(), range.numParts, range.offset)
            : pwritev(file, range.parts.data(), range.numParts, range.offset);
    if (moved < 0 && errno == EINTR)
      continue;
    if (moved <= 0)
      failIo(direction, moved < 0 ? errno : 0);
    advance(range, moved);
  }
}

} // namespace

#ifdef NEUROSHARD_LIBURING
struct RowIo::Ring {
  io_uring uring{};
  const bool works = io_uring_queue_init(kDepth, &uring, 0) == 0;

  ~Ring() {
    if (works)
      io_uring_queue_exit(&uring);
  }

  void start(int file, IoDirection direction, FileRange &range) {
    io_uring_sqe *entry = io_uring_get_sqe(&uring);
    auto count = static_cast<unsigned>(range.numParts);
    auto offset = static_cast<__u64>(range.offset);
    if (direction == IoDirection::Read)
      io_uring_prep_readv(entry, file, range.parts.data(), count, offset);
    else
      io_uring_prep_writev(entry, file, range.parts.data(), count, offset);
    io_uring_sqe_set_data(entry, &range);
  }

  /// Submits what was started and waits for some to end, at most as many as
  /// run.
  void submitAndWait(unsigned count) {
    int result = 0;
    do
      result = io_uring_submit_and_wait(&uring, count);
    while (result == -EINTR);
    if (result < 0 && result != -EAGAIN && result != -EBUSY)
      fail("cannot use io_uring: ", std::strerror(-result));
  }

  /// Takes those that have ended. Returns how many.
  template <typename Function> unsigned takeEnded(const Function &ended) {
    unsigned head = 0, count = 0;
    io_uring_cqe *entry = nullptr;
    io_uring_for_each_cqe(&uring, head, entry) {
      ended(*static_cast<FileRange *>(io_uring_cqe_get_data(entry)),
            entry->res);
      ++count;
    }
    io_uring_cq_advance(&uring, count);
    return count;
  }
};

#else
/// Never works.
struct RowIo::Ring {
  const bool works = false;

  void start(int, IoDirection, FileRange &) {}
  void submitAndWait(unsigned) {}
  template <typename Function> unsigned takeEnded(const Function &) {
    return 0;
  }
};
#endif

RowIo::RowIo() : ring(std::make_unique<Ring>()) {
  if (!ring->works) // containers often forbid it
    threads = std::make_unique<ThreadPool>(kThreads);
}

RowIo::~RowIo() = default;

void RowIo::writePages(int file, std::span<FileRange> ranges) {
  touchPages(file, ranges);
  for (FileRange &range : ranges)
    runOne(file, IoDirection::Write, range);
}

std::span<std::byte> RowIo::staging() {
  if (stagingMemory.size() == 0)
    stagingMemory = PageBlock(kStagingBytes);
  return {stagingMemory.data(), static_cast<size_t>(stagingMemory.size())};
}

/// Brings the pages at both ends of each range into memory.
void RowIo::touchPages(int file, std::span<const FileRange> ranges) {
  std::byte unread{};
  std::vector<FileRange> touches;
  touches.reserve(2 * ranges.size());
  auto touch = [&](int64_t offset) {
    FileRange &range = touches.emplace_back();
    range = {offset, 1, {}, 1};
    range.parts[0] = {&unread, 1};
  };
  for (const FileRange &range : ranges) {
    int64_t last = range.offset + range.bytes - 1;
    touch(range.offset);
    if (last / kPageBytes != range.offset / kPageBytes)
      touch(last);
  }
  run(file, IoDirection::Read, touches);
}

void RowIo::run(int file, IoDirection direction, std::span<FileRange> ranges) {
  if (threads) {
    threads->parallelFor(static_cast<int64_t>(ranges.size()), [&](int64_t i) {
      runOne(file, direction, ranges[static_cast<size_t>(i)]);
    });
    return;
  }
  size_t next = 0;
  unsigned running = 0;
  int error = 0;
  std::vector<FileRange *> cutShort;
  while (next < ranges.size() || running > 0) {
    for (; next < ranges.size() && running < kDepth; ++next, ++running)
      ring->start(file, direction, ranges[next]);
    ring->submitAndWait(std::min(running, kWaitedFor));
    running -= ring->takeEnded([&](FileRange &range, int result) {
      if (result < 0 && result != -EAGAIN && result != -EINTR) {
        error = -result;
      } else if (result != range.bytes) {
        advance(range, std::max(result, 0));
        cutShort.push_back(&range);
      }
    });
    if (error != 0)
      next = ranges.size(); // what runs must end before memory goes
  }
  if (error != 0)
    failIo(direction, error);
  for (FileRange *range : cutShort)
    runOne(file, direction, *range);
}

} // namespace neuroshard::runtime
