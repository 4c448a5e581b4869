//===- MessageRows.h - Rows of a block in a message -------------*- C++ -*-===//
//
// Kernels write and read f32 rows, without scales. The moves between those and
// a message in the format of the wire.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_MESSAGEROWS_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_MESSAGEROWS_H

#include "Device/Device.h"

#include <vector>

namespace neuroshard::runtime {

/// `rows` x `width` values between f32 rows and those of a message.
struct RowsOfMessage {
  int64_t begin, stride;               ///< of the f32 rows.
  int64_t messageBegin, messageStride; ///< with scales.
  int64_t rows, width;

  void addPacking(const float *from, std::byte *to, WireFormat format,
                  std::vector<RowMove> &moves) const;
  void addUnpacking(const std::byte *from, float *to, WireFormat format,
                    std::vector<RowMove> &moves) const;
};

/// All rows that travel directly between an owner and a rank of samples: one
/// piece if the format has no scales.
std::vector<RowsOfMessage> directRows(const StreamSet &set, int64_t rank,
                                      int64_t batch,
                                      const std::vector<int64_t> &idsOfStream,
                                      WireFormat format);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_MESSAGEROWS_H
