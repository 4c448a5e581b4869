//===- Python.cpp - Starts benchmarks that are Python ---------------------===//

#include "Python.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

namespace neuroshard {

/// This build's package first.
static void setPythonPath() {
  std::string path = NEUROSHARD_BENCH_PACKAGE;
  if (const char *given = std::getenv("PYTHONPATH"); given && *given)
    path.append(":").append(given);
  setenv("PYTHONPATH", path.c_str(), 1);
}

void runPython(const std::string &python, std::vector<std::string> words) {
  words.insert(words.begin(), python);
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  setPythonPath();
  execvp(arguments[0], arguments.data());
  throw std::runtime_error("cannot run " + python + ": " +
                           std::strerror(errno) +
                           "; --python names an interpreter that has torch");
}

} // namespace neuroshard
