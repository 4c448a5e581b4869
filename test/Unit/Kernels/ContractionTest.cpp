//===- ContractionTest.cpp - Matrix products of compiled functions --------===//
//
// Products of all forms and of sizes around those of tiles and blocks have the
// bits of the sums in the order of k, fused where the CPU fuses.

#include "Elements.h"
#include "HostProgram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <span>

using namespace neuroshard;

namespace {

/// The dimensions of the inputs and of the result, as letters.
struct Form {
  const char *left, *right, *out;
};

constexpr Form kForms[] = {{"ik", "kj", "ij"},    {"ik", "jk", "ij"},
                           {"ki", "kj", "ij"},    {"kj", "ik", "ij"},
                           {"bik", "bkj", "bij"}, {"bik", "bjk", "bij"},
                           {"bik", "kj", "bij"},  {"ibk", "bkj", "bij"},
                           {"bik", "bkj", "ibj"}, {"bcik", "ckj", "cbij"}};

std::string typeOf(const std::string &letters, const std::string &element) {
  std::string text = "tensor<";
  for (size_t i = 0; i < letters.size(); ++i)
    text += "?x";
  return text + element + ">";
}

std::string mapOf(const std::string &letters) {
  std::string text;
  for (char letter : letters)
    text += (text.empty() ? "" : ", ") + std::string(1, letter);
  return "affine_map<(b, c, i, k, j) -> (" + text + ")>";
}

/// @f adds a product of operands of a type to its third argument, in f32. Loops
/// of no operand are left out.
std::string programOf(const Form &form, const std::string &element) {
  std::string all = std::string(form.left) + form.right + form.out;
  std::string loops, kinds;
  for (char letter : std::string("bcikj"))
    if (all.find(letter) != std::string::npos) {
      loops += (loops.empty() ? "" : ", ") + std::string(1, letter);
      kinds += std::string(kinds.empty() ? "" : ", ") +
               (letter == 'k' ? "\"reduction\"" : "\"parallel\"");
    }
  auto map = [&](const std::string &letters) {
    std::string text = mapOf(letters);
    return text.replace(text.find("b, c, i, k, j"), 13, loops);
  };
  std::string left = typeOf(form.left, element),
              right = typeOf(form.right, element),
              out = typeOf(form.out, "f32");
  std::string extension = " : " + element + " to f32\n", product = "%x, %y";
  std::string extended;
  if (element != "f32") {
    extended = "    %u = arith.extf %x" + extension + "    %v = arith.extf %y" +
               extension;
    product = "%u, %v";
  }
  return "func.func @f(%a: " + left + ", %b: " + right + ", %c: " + out +
         ") -> " + out + " {\n  %0 = linalg.generic {indexing_maps = [" +
         map(form.left) + ", " + map(form.right) + ", " + map(form.out) +
         "], iterator_types = [" + kinds + "]} ins(%a, %b : " + left + ", " +
         right + ") outs(%c : " + out + ") {\n" + "  ^bb0(%x: " + element +
         ", %y: " + element + ", %s: f32):\n" + extended +
         "    %p = arith.mulf " + product +
         " : f32\n"
         "    %r = arith.addf %s, %p : f32\n"
         "    linalg.yield %r : f32\n  } -> " +
         out + "\n  return %0 : " + out + "\n}\n";
}

/// Values of an operand whose dimensions have the sizes of their letters.
struct Operand {
  std::string letters;
  std::vector<int64_t> sizes, strides;
  std::vector<float> values;
  std::vector<uint16_t> narrow; ///< the same in a narrower type, if it is one

  Operand(const char *letters, const std::map<char, int64_t> &sizeOf, int salt,
          ElementType element = ElementType::F32)
      : letters(letters) {
    int64_t count = 1;
    for (char letter : this->letters)
      sizes.push_back(sizeOf.at(letter));
    strides.assign(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 0; count *= sizes[i])
      strides[i] = count;
    values = makeValues(std::max<int64_t>(count, 1), Data::Messy, salt);
    if (element == ElementType::F32)
      return;
    std::mt19937 dice(salt);
    std::uniform_real_distribution<float> uniform(-2, 2); // f16 has no 1e10
    for (float &value : values) {
      narrow.push_back(toBits(element, uniform(dice)));
      value = fromBits(element, narrow.back());
    }
  }

  int64_t indexAt(const std::map<char, int64_t> &at) const {
    int64_t index = 0;
    for (size_t i = 0; i < letters.size(); ++i)
      index += strides[i] * at.at(letters[i]);
    return index;
  }

  /// A descriptor: two pointers, the offset, sizes and strides.
  std::vector<int64_t> describe() const {
    auto address = narrow.empty() ? reinterpret_cast<int64_t>(values.data())
                                  : reinterpret_cast<int64_t>(narrow.data());
    std::vector<int64_t> words = {address, address, 0};
    words.insert(words.end(), sizes.begin(), sizes.end());
    words.insert(words.end(), strides.begin(), strides.end());
    return words;
  }
};

std::vector<float> expected(const Operand &a, const Operand &b,
                            const Operand &c,
                            const std::map<char, int64_t> &sizeOf, bool fused) {
  std::vector<float> result = c.values;
  std::map<char, int64_t> at;
  for (at['b'] = 0; at['b'] < sizeOf.at('b'); ++at['b'])
    for (at['c'] = 0; at['c'] < sizeOf.at('c'); ++at['c'])
      for (at['i'] = 0; at['i'] < sizeOf.at('i'); ++at['i'])
        for (at['j'] = 0; at['j'] < sizeOf.at('j'); ++at['j']) {
          float &sum = result[c.indexAt(at)];
          for (at['k'] = 0; at['k'] < sizeOf.at('k'); ++at['k']) {
            float x = a.values[a.indexAt(at)], y = b.values[b.indexAt(at)];
            sum = fused ? std::fma(x, y, sum) : sum + x * y;
          }
        }
  return result;
}

void check(const Form &form, ElementType element, const NativeLibrary &library,
           bool fused, std::mt19937 &dice) {
  // Around tiles of 6 and 12 rows, of 8, 16 and 32 columns, and a block of
  // 256 sums.
  constexpr int64_t kRows[] = {0, 1, 5, 6, 13, 25},
                    kSums[] = {0, 1, 3, 256, 259},
                    kColumns[] = {1, 7, 8, 16, 33, 70}, kBatches[] = {1, 2, 3};
  auto pick = [&](auto &sizes) { return sizes[dice() % std::size(sizes)]; };
  std::string all = std::string(form.left) + form.right + form.out;
  auto batches = [&](char letter) -> int64_t {
    return all.find(letter) == std::string::npos ? 1 : pick(kBatches);
  };
  std::map<char, int64_t> sizeOf = {{'b', batches('b')},
                                    {'c', batches('c')},
                                    {'i', pick(kRows)},
                                    {'k', pick(kSums)},
                                    {'j', pick(kColumns)}};
  Operand a(form.left, sizeOf, 1, element), b(form.right, sizeOf, 2, element),
      c(form.out, sizeOf, 3);
  std::vector<int64_t> words[] = {a.describe(), b.describe(), c.describe()};
  std::vector<int64_t> result(words[2].size());
  void *arguments[] = {result.data(), words[0].data(), words[1].data(),
                       words[2].data()};
  findInvoke(library, "f")(arguments);
  std::vector<float> sums = expected(a, b, c, sizeOf, fused);
  auto *found = reinterpret_cast<float *>(result[1]);
  int64_t count = 1;
  for (int64_t size : c.sizes)
    count *= size;
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(bitsOf(found[i]), bitsOf(sums[i]))
        << form.left << " " << form.right << " " << form.out << " at " << i
        << ": i " << sizeOf['i'] << ", k " << sizeOf['k'] << ", j "
        << sizeOf['j'];
  std::free(reinterpret_cast<void *>(result[0]));
}

class Contractions : public testing::TestWithParam<const char *> {};

TEST_P(Contractions, HaveTheBitsOfSumsInOrder) {
  const std::string cpu = GetParam();
  if (cpu == "x86-64-v3" && !__builtin_cpu_supports("x86-64-v3"))
    GTEST_SKIP() << "this CPU has no AVX2";
  bool fused =
      cpu == "host" ? __builtin_cpu_supports("fma") != 0 : cpu == "x86-64-v3";
  std::mt19937 dice(7);
  auto run = [&](const Form &form, ElementType element, const char *name) {
    Program program(programOf(form, name));
    NativeOptions options;
    options.targetCpu = cpu;
    NativeLibrary library(*program.module, options);
    for (int round = 0; round < 12; ++round)
      check(form, element, library, fused, dice);
  };
  for (const Form &form : kForms) {
    run(form, ElementType::F32, "f32");
    if (HasFatalFailure())
      return;
  }
  for (const Form &form : std::span(kForms).first(2)) {
    run(form, ElementType::F16, "f16");
    run(form, ElementType::BF16, "bf16");
    if (HasFatalFailure())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Contractions,
                         testing::Values("x86-64-v2", "x86-64-v3", "host"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
