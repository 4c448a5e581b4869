//===- WhatIf.h - What other topologies would cost --------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_REPORT_WHATIF_H
#define NEUROSHARD_TOOLS_REPORT_WHATIF_H

#include "Options.h"

#include "neuroshard/Model/ShardingProblem.h"

#include <ostream>

namespace neuroshard {

/// Plans the problem for each topology of ReportOptions::whatIf: cost, lower
/// bound, memory of the fullest device, or why there is no plan, as when a
/// constraint names devices that are not there. An error, before the first is
/// planned, when a topology is none.
Expected<void> printWhatIf(const ShardingProblem &problem,
                           const ReportOptions &options, std::ostream &out);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REPORT_WHATIF_H
