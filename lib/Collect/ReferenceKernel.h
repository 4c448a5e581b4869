//===- ReferenceKernel.h - Probe of the machine's current speed -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COLLECT_REFERENCEKERNEL_H
#define NEUROSHARD_LIB_COLLECT_REFERENCEKERNEL_H

#include "neuroshard/Collect/Measurement.h"

#include <memory>

namespace neuroshard::collect {

/// A fixed set, measured before and after others to correct for the machine's
/// drift. It is quick, and too large for the caches.
class ReferenceKernel {
public:
  explicit ReferenceKernel(Measurer &measurer);

  /// Forward + backward.
  Expected<double> measureMs();

private:
  Measurer &measurer;
  MeasuredSet set;
  std::unique_ptr<LoadedSet> loaded;
};

} // namespace neuroshard::collect

#endif // NEUROSHARD_LIB_COLLECT_REFERENCEKERNEL_H
