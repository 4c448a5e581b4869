//===- CompiledModule.h - GPU modules compiled for the emulator -*- C++ -*-===//

#ifndef NEUROSHARD_TEST_EMULATOR_COMPILEDMODULE_H
#define NEUROSHARD_TEST_EMULATOR_COMPILEDMODULE_H

#include "neuroshard/Conversion/Emulation/Emulation.h"
#include "neuroshard/Conversion/Native/Pipeline.h"

#include "mlir/Parser/Parser.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <string_view>

namespace neuroshard {

/// The contents of the library that a module with a gpu.module is compiled to.
inline std::string compile(const std::string &text) {
  mlir::DialectRegistry registry;
  registerNativeDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  std::string folder = testing::TempDir() + "neuroshard-emulated-XXXXXX";
  EXPECT_TRUE(mkdtemp(folder.data()));
  std::string path = folder + "/kernels.emulated.so";
  EXPECT_TRUE(module && succeeded(compileEmulated(*module, {}, path)));
  std::ifstream file(path, std::ios::binary);
  std::string image(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove_all(folder);
  return image;
}

/// The text with the first `from` replaced, which must be there.
inline std::string replaceOnce(std::string text, std::string_view from,
                               std::string_view to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

} // namespace neuroshard

#endif // NEUROSHARD_TEST_EMULATOR_COMPILEDMODULE_H
