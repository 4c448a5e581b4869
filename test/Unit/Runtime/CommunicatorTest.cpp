//===- CommunicatorTest.cpp - Ranks that are threads ----------------------===//
//
// Shows that every rank receives the bytes sent to it, that buffers live as
// long as a receiver reads them, and that no wait outlives an abort.
//
//===----------------------------------------------------------------------===//

#include "Communicators/InProcessCommunicator.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace neuroshard::runtime;

namespace {

/// Runs `body` on one thread per rank.
void onRanks(InProcessGroup &group, int size,
             const std::function<void(Communicator &)> &body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&group, &body, rank] {
      auto communicator = group.makeCommunicator(rank);
      communicator->enterStep();
      body(*communicator);
      communicator->leaveStep();
    });
  for (std::thread &thread : threads)
    thread.join();
}

SharedBytes bytesOf(const std::vector<int> &values) {
  std::shared_ptr<int[]> copy(new int[values.size() + 1]);
  std::copy(values.begin(), values.end(), copy.get());
  return {copy, reinterpret_cast<const std::byte *>(copy.get())};
}

std::vector<int> valuesOf(std::span<const std::byte> bytes) {
  auto *first = reinterpret_cast<const int *>(bytes.data());
  return std::vector<int>(first, first + bytes.size() / sizeof(int));
}

constexpr int kSize = 3;

TEST(Communicator, AllToAllWithUnevenCounts) {
  auto group = std::make_shared<InProcessGroup>(kSize);
  onRanks(*group, kSize, [](Communicator &self) {
    for (int round = 0; round < 200; ++round) {
      // Rank s sends (s + r + round) % 3 copies of 10 s + r to rank r.
      auto count = [&](int s, int r) { return (s + r + round) % 3; };
      std::vector<int> send;
      std::vector<int64_t> sendBytes, receiveBytes;
      for (int peer = 0; peer < kSize; ++peer) {
        send.insert(send.end(), static_cast<size_t>(count(self.rank(), peer)),
                    10 * self.rank() + peer);
        sendBytes.push_back(4 * count(self.rank(), peer));
        receiveBytes.push_back(4 * count(peer, self.rank()));
      }
      auto request = self.startAllToAll(MessageKind::Ids, MessageMemory::Host,
                                        bytesOf(send), sendBytes, receiveBytes);
      auto second = self.startAllGather(MessageKind::Ids, MessageMemory::Host,
                                        bytesOf({self.rank()}), 4,
                                        std::vector<int64_t>(kSize, 4));
      for (int peer = 0; peer < kSize; ++peer) {
        EXPECT_EQ(
            valuesOf(request->wait()[static_cast<size_t>(peer)]),
            std::vector<int>(static_cast<size_t>(count(peer, self.rank())),
                             10 * peer + self.rank()));
        EXPECT_EQ(valuesOf(second->wait()[static_cast<size_t>(peer)]),
                  std::vector<int>{peer});
      }
    }
  });
}

TEST(Communicator, AbortEndsEveryWait) {
  auto group = std::make_shared<InProcessGroup>(kSize);
  onRanks(*group, kSize, [](Communicator &self) {
    if (self.rank() == 1) {
      self.abort("rank 1: out of paper");
      self.abort("a second cause");
      return;
    }
    std::vector<int64_t> none(kSize, 0);
    try {
      self.startAllToAll(MessageKind::Ids, MessageMemory::Host, bytesOf({}),
                         none, none)
          ->wait();
      ADD_FAILURE() << "the wait must throw";
    } catch (const CommunicatorError &error) {
      EXPECT_STREQ(error.what(), "rank 1: out of paper");
    }
  });
  EXPECT_EQ(group->abortCause(), "rank 1: out of paper");
}

TEST(Communicator, ResetAllowsTheNextStep) {
  auto group = std::make_shared<InProcessGroup>(kSize);
  onRanks(*group, kSize, [](Communicator &self) {
    std::vector<int64_t> none(kSize, 0);
    if (self.rank() == 0)
      return; // without taking part
    EXPECT_THROW(self.startAllToAll(MessageKind::Ids, MessageMemory::Host,
                                    bytesOf({}), none, none)
                     ->wait(),
                 CommunicatorError);
  });
  EXPECT_THAT(group->abortCause(),
              testing::StartsWith("rank 0: left the step"));
  group->reset();
  onRanks(*group, kSize, [](Communicator &self) {
    auto request = self.startAllGather(MessageKind::Ids, MessageMemory::Host,
                                       bytesOf({self.rank()}), 4,
                                       std::vector<int64_t>(kSize, 4));
    EXPECT_EQ(valuesOf(request->wait()[2]), std::vector<int>{2});
  });
  EXPECT_EQ(group->abortCause(), "");
}

TEST(Communicator, SizesThatDisagreeAreNamed) {
  auto group = std::make_shared<InProcessGroup>(2);
  onRanks(*group, 2, [](Communicator &self) {
    std::vector<int64_t> four(2, 4), eight(2, 8);
    auto request = self.startAllToAll(MessageKind::Ids, MessageMemory::Host,
                                      bytesOf({1, 2}), four,
                                      self.rank() == 0 ? eight : four);
    if (self.rank() == 1)
      return;
    try {
      request->wait();
      ADD_FAILURE() << "the wait must throw";
    } catch (const std::runtime_error &error) {
      EXPECT_STREQ(error.what(),
                   "rank 0 expected 8 bytes from rank 0, which sent 4");
    }
  });
}

TEST(Communicator, AbandonedRequestsDoNotKeepBuffers) {
  auto group = std::make_shared<InProcessGroup>(2);
  std::weak_ptr<const std::byte> watched[2];
  onRanks(*group, 2, [&](Communicator &self) {
    SharedBytes send = bytesOf({1, 2});
    watched[self.rank()] = send;
    std::vector<int64_t> four(2, 4);
    auto request = self.startAllToAll(MessageKind::Ids, MessageMemory::Host,
                                      send, four, four);
    auto last = self.startAllToAll(MessageKind::Ids, MessageMemory::Host, send,
                                   four, four);
    last->wait();
  });
  EXPECT_TRUE(watched[0].expired());
  EXPECT_TRUE(watched[1].expired());
}

} // namespace
