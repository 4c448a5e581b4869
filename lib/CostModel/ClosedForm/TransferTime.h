//===- TransferTime.h - Time to move bytes at a bandwidth ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_TRANSFERTIME_H
#define NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_TRANSFERTIME_H

namespace neuroshard {

/// Milliseconds that `bytes` take at `bandwidthGBps` (1e9 bytes a second).
inline double bytesToMs(double bytes, double bandwidthGBps) {
  return bytes / (bandwidthGBps * 1e9) * 1e3;
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_TRANSFERTIME_H
