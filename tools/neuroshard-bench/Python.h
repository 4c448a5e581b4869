//===- Python.h - Benchmarks that are Python --------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_PYTHON_H
#define NEUROSHARD_TOOLS_BENCH_PYTHON_H

#include <string>
#include <vector>

namespace neuroshard {

/// Becomes `python words...`, with this build's package first on its path.
/// Throws std::runtime_error if it cannot be run.
[[noreturn]] void runPython(const std::string &python,
                            std::vector<std::string> words);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_BENCH_PYTHON_H
