//===- RouteIds.cpp - Sends the ids of the local batch to their owners ----===//
//
// Ranks first exchange headers with all sizes and the length of an error's
// text. If a rank has found an error, all ranks exchange texts instead of ids
// and end the step with the same cause.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "Bucketer.h"
#include "Wire.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::runtime {
namespace {

/// Sent to every rank before the ids.
struct Header {
  int64_t exchange;
  int64_t errorBytes; ///< 0: no error.
  int64_t batch;
  int64_t payloadBytes;     ///< of ids for the receiver.
  int64_t replicatedBytes;  ///< of ids of replicated tables,
  int64_t replicatedFloats; ///< and of their gradients.
};

static_assert(sizeof(Header) == kIdHeaderBytes);

Buffer copyOf(Device &device, const void *data, size_t bytes) {
  Buffer buffer =
      device.buffers->acquire(BufferKind::Headers, static_cast<int64_t>(bytes));
  std::memcpy(buffer.get(), data, bytes);
  return buffer;
}

std::vector<Header> exchangeHeaders(Device &device, Routed &routed,
                                    const std::string &error,
                                    const std::vector<int64_t> &payloadBytes) {
  std::vector<Header> headers;
  int64_t localFloats = makeLocalBlock(device, routed).size;
  for (int64_t bytes : payloadBytes)
    headers.push_back({routed.exchange, static_cast<int64_t>(error.size()),
                       routed.batch, bytes, routed.localPayloadBytes,
                       localFloats});
  std::vector<int64_t> bytes(headers.size(), sizeof(Header));
  auto request = device.communicator->startAllToAll(
      copyOf(device, headers.data(), headers.size() * sizeof(Header)), bytes,
      bytes);
  const auto &received = request->wait();
  for (size_t peer = 0; peer < headers.size(); ++peer) {
    std::memcpy(&headers[peer], received[peer].data(), sizeof(Header));
    if (headers[peer].exchange != routed.exchange)
      fail("routes exchange ", routed.exchange, " while rank ", peer,
           " routes exchange ", headers[peer].exchange,
           "; all ranks must run the same function");
  }
  return headers;
}

/// Returns the text of the first rank that has one.
std::string exchangeErrors(Device &device, const std::string &error,
                           const std::vector<Header> &headers) {
  std::vector<int64_t> bytes;
  for (const Header &header : headers)
    bytes.push_back(header.errorBytes);
  auto request = device.communicator->startAllGather(
      copyOf(device, error.data(), error.size()),
      static_cast<int64_t>(error.size()), bytes);
  for (const auto &text : request->wait())
    if (!text.empty())
      return std::string(reinterpret_cast<const char *>(text.data()),
                         text.size());
  return error;
}

/// For a single device: nothing travels, kernels read the payload in place.
void keep(Routed &routed, Bucketer &bucketer, const std::string &error) {
  routed.error = error;
  routed.ownPayload = bucketer.payloads;
  routed.batchOfPeer = {routed.batch};
}

void send(Device &device, Routed &routed, Bucketer &bucketer,
          const std::string &error) {
  bucketer.payloadBytes.resize(static_cast<size_t>(device.numDevices()));
  PhaseTimer timer(device.figures, Phase::IdsExchange);
  std::vector<Header> headers =
      exchangeHeaders(device, routed, error, bucketer.payloadBytes);
  if (std::any_of(headers.begin(), headers.end(),
                  [](const Header &header) { return header.errorBytes > 0; })) {
    routed.error = exchangeErrors(device, error, headers);
    return;
  }
  std::vector<int64_t> receiveBytes;
  for (const Header &header : headers) {
    routed.batchOfPeer.push_back(header.batch);
    routed.replicatedOfPeer.push_back(
        {header.replicatedBytes, header.replicatedFloats});
    receiveBytes.push_back(header.payloadBytes);
  }
  if (!device.layout(routed.exchange).hasRemote)
    return;
  countSentBytes(device, Phase::IdsExchange, bucketer.payloadBytes);
  routed.request = device.communicator->startAllToAll(
      bucketer.payloads, bucketer.payloadBytes, receiveBytes);
}

} // namespace

void routeIds(Device &device, const JaggedInput &input, Routed &routed,
              const std::string &earlierError) {
  Bucketer bucketer(device, input, routed);
  std::string error = earlierError;
  if (error.empty()) {
    PhaseTimer timer(device.figures, Phase::Route);
    try {
      bucketer.run();
    } catch (const RuntimeError &failure) {
      error = failure.what();
    }
  }
  if (!error.empty())
    error = "rank " + std::to_string(device.rank()) + ": " + error;
  if (device.numDevices() == 1)
    keep(routed, bucketer, error);
  else
    send(device, routed, bucketer, error);
}

} // namespace neuroshard::runtime
