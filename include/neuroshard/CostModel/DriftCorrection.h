//===- DriftCorrection.h - Takes a machine's drift out of times -*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_DRIFTCORRECTION_H
#define NEUROSHARD_COSTMODEL_DRIFTCORRECTION_H

#include <span>
#include <vector>

namespace neuroshard {

/// For each measurement the factor that scales its times to the machine's usual
/// speed: the median of the reference kernel's times over its time around the
/// measurement. 1 where that is 0: the kernel was not timed.
std::vector<double> driftFactors(std::span<const double> referenceMs);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_DRIFTCORRECTION_H
