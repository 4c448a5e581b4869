//===- CpuFeatures.cpp - Instruction sets that an artifact needs ----------===//

#include "neuroshard/Artifact/CpuFeatures.h"

#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace neuroshard {
namespace {

/// Registers that the operating system must save.
enum class State : uint32_t { None = 0, Avx = 0x6, Avx512 = 0xe6 };
enum Register { EAX, EBX, ECX, EDX };

/// Where `cpuid` tells of a set: Intel's manual, volume 2A, table 3-17; AMD's,
/// volume 3, appendix E.
struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register where;
  int bit;
  State state;
  /// The lowest level of x86-64 that has it; 5: none.
  int level;
};

constexpr uint32_t kAmd = 0x80000001;
constexpr std::array kFeatures = {
    Feature{"sse3", 1, 0, ECX, 0, State::None, 2},
    Feature{"ssse3", 1, 0, ECX, 9, State::None, 2},
    Feature{"sse4.1", 1, 0, ECX, 19, State::None, 2},
    Feature{"sse4.2", 1, 0, ECX, 20, State::None, 2},
    Feature{"popcnt", 1, 0, ECX, 23, State::None, 2},
    Feature{"avx", 1, 0, ECX, 28, State::Avx, 3},
    Feature{"avx2", 7, 0, EBX, 5, State::Avx, 3},
    Feature{"fma", 1, 0, ECX, 12, State::Avx, 3},
    Feature{"f16c", 1, 0, ECX, 29, State::Avx, 3},
    Feature{"bmi", 7, 0, EBX, 3, State::None, 3},
    Feature{"bmi2", 7, 0, EBX, 8, State::None, 3},
    Feature{"lzcnt", kAmd, 0, ECX, 5, State::None, 3},
    Feature{"movbe", 1, 0, ECX, 22, State::None, 3},
    Feature{"avx512f", 7, 0, EBX, 16, State::Avx512, 4},
    Feature{"avx512dq", 7, 0, EBX, 17, State::Avx512, 4},
    Feature{"avx512cd", 7, 0, EBX, 28, State::Avx512, 4},
    Feature{"avx512bw", 7, 0, EBX, 30, State::Avx512, 4},
    Feature{"avx512vl", 7, 0, EBX, 31, State::Avx512, 4},
    Feature{"avx512ifma", 7, 0, EBX, 21, State::Avx512, 5},
    Feature{"avx512vbmi", 7, 0, ECX, 1, State::Avx512, 5},
    Feature{"avx512vbmi2", 7, 0, ECX, 6, State::Avx512, 5},
    Feature{"avx512vnni", 7, 0, ECX, 11, State::Avx512, 5},
    Feature{"avx512bitalg", 7, 0, ECX, 12, State::Avx512, 5},
    Feature{"avx512vpopcntdq", 7, 0, ECX, 14, State::Avx512, 5},
    Feature{"avx512fp16", 7, 0, EDX, 23, State::Avx512, 5},
    Feature{"avx512bf16", 7, 1, EAX, 5, State::Avx512, 5},
    Feature{"avxvnni", 7, 1, EAX, 4, State::Avx, 5},
    Feature{"gfni", 7, 0, ECX, 8, State::None, 5},
    Feature{"sse4a", kAmd, 0, ECX, 6, State::None, 5},
    Feature{"xop", kAmd, 0, ECX, 11, State::Avx, 5},
    Feature{"fma4", kAmd, 0, ECX, 16, State::Avx, 5},
    Feature{"tbm", kAmd, 0, ECX, 21, State::None, 5},
};

const Feature *find(std::string_view name) {
  const auto *found = std::ranges::find(kFeatures, name, &Feature::name);
  return found == kFeatures.end() ? nullptr : found;
}

#if defined(__x86_64__)
bool savesState(State state) {
  if (state == State::None)
    return true;
  constexpr uint32_t kOsxsave = 1u << 27;
  std::array<uint32_t, 4> found = {};
  if (!__get_cpuid(1, &found[EAX], &found[EBX], &found[ECX], &found[EDX]) ||
      !(found[ECX] & kOsxsave))
    return false;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  auto needed = static_cast<uint32_t>(state);
  return (low & needed) == needed;
}

bool cpuHas(const Feature &feature) {
  std::array<uint32_t, 4> found = {};
  return __get_cpuid_count(feature.leaf, feature.subleaf, &found[EAX],
                           &found[EBX], &found[ECX], &found[EDX]) &&
         (found[feature.where] >> feature.bit & 1) && savesState(feature.state);
}
#else
bool cpuHas(const Feature &) { return false; }
#endif

/// LLVM's name of the highest level of x86-64 that this CPU has.
std::string levelOfCpu() {
  int level = 4;
  for (const Feature &feature : kFeatures)
    if (feature.level <= level && !cpuHas(feature))
      level = feature.level - 1;
  return level > 1 ? "x86-64-v" + std::to_string(level) : "x86-64";
}

} // namespace

bool isCpuFeature(std::string_view name) { return find(name) != nullptr; }

void checkCpu(const Manifest &manifest) {
  std::string missing;
  for (const std::string &name : manifest.targetFeatures) {
    const Feature *feature = find(name);
    if (!feature || !cpuHas(*feature))
      missing += (missing.empty() ? "" : ", ") + name;
  }
  if (!missing.empty())
    fail("the artifact is compiled for the CPU ", manifest.targetCpu,
         " and uses ", missing,
         ", which the CPU of this machine lacks; compile it on this machine, "
         "or elsewhere with --target-cpu ",
         levelOfCpu());
}

} // namespace neuroshard
