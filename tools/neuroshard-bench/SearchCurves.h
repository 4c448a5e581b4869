//===- SearchCurves.h - Curves of cost and time for plots -------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_SEARCHCURVES_H
#define NEUROSHARD_TOOLS_BENCH_SEARCHCURVES_H

#include "SearchReport.h"

namespace neuroshard {

/// Writes JSON for tools/neuroshard-bench/plot_search.py: cost of the best plan
/// over time, cost of every algorithm's plan, and time against tables x
/// devices.
Expected<void> writeCurves(const SearchBenchOptions &bench,
                           const std::string &path);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_BENCH_SEARCHCURVES_H
