//===- Count.h - A number among options that need not be given --*- C++ -*-===//

#ifndef NEUROSHARD_TRANSFORMS_COUNT_H
#define NEUROSHARD_TRANSFORMS_COUNT_H

#include "llvm/Support/CommandLine.h"

#include <cstdint>
#include <limits>

namespace neuroshard {

/// A count among the options of a pass. One that is not given is printed as an
/// empty text, as texts are that are not given, and read from it.
struct Count {
  static constexpr int64_t kNotGiven = std::numeric_limits<int64_t>::min();

  int64_t value = kNotGiven;

  bool isGiven() const { return value != kNotGiven; }
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os,
                                     const Count &count) {
  return count.isGiven() ? os << count.value : os;
}

} // namespace neuroshard

template <>
class llvm::cl::parser<neuroshard::Count>
    : public llvm::cl::basic_parser<neuroshard::Count> {
public:
  using basic_parser::basic_parser;

  /// True after an error, which is printed.
  bool parse(Option &option, StringRef, StringRef text,
             neuroshard::Count &count) {
    count = {};
    if (text.empty() || !text.getAsInteger(10, count.value))
      return false;
    return option.error("'" + text + "' value invalid for integer argument!");
  }
  StringRef getValueName() const override { return "number"; }
  void printOptionDiff(const Option &option, const neuroshard::Count &,
                       const OptionValue<neuroshard::Count> &,
                       size_t width) const {
    printOptionNoValue(option, width);
  }
};

#endif // NEUROSHARD_TRANSFORMS_COUNT_H
