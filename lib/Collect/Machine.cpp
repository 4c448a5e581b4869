//===- Machine.cpp - Describes the machine of a measurement ---------------===//

#include "Machine.h"

#include <array>
#include <cmath>
#include <ctime>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace {

/// The first "model name" of /proc/cpuinfo.
std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

std::string today() {
  std::time_t now = std::time(nullptr);
  std::array<char, 16> text;
  std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
  return text.data();
}

} // namespace

std::map<std::string, std::string> neuroshard::collect::describeMachine() {
  double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                 static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return {{"machine", processorName() + ", " +
                          std::to_string(std::thread::hardware_concurrency()) +
                          " cores, " +
                          std::to_string(std::lround(bytes / 0x1p30)) + " GiB"},
          {"compiler", __VERSION__},
          {"created", today()}};
}
