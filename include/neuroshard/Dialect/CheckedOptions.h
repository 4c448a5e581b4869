//===- CheckedOptions.h - A pass that reads options strictly ----*- C++ -*-===//

#ifndef NEUROSHARD_DIALECT_CHECKEDOPTIONS_H
#define NEUROSHARD_DIALECT_CHECKEDOPTIONS_H

#include "neuroshard/Support/OptionText.h"

#include "mlir/Pass/Pass.h"

namespace neuroshard {

/// A generated base class of passes that refuses options given twice,
/// numbers that are not decimal, and unknown options with the one that may be
/// meant.
template <typename PassBase> class CheckedOptions : public PassBase {
public:
  using PassBase::PassBase;

  mlir::LogicalResult
  initializeOptions(llvm::StringRef options,
                    llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)>
                        errorHandler) override {
    std::string error = optionTextError(options);
    if (!error.empty())
      return errorHandler(error);
    return PassBase::initializeOptions(options, [&](const llvm::Twine &text) {
      std::string printed;
      llvm::raw_string_ostream stream(printed);
      this->printAsTextualPipeline(stream);
      return errorHandler(
          unknownOptionError(this->getArgument().str(), text.str(), printed));
    });
  }
};

} // namespace neuroshard

#endif // NEUROSHARD_DIALECT_CHECKEDOPTIONS_H
