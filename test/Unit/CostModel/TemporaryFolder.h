//===- TemporaryFolder.h - A folder that goes with the test -----*- C++ -*-===//

#ifndef NEUROSHARD_TEST_COSTMODEL_TEMPORARYFOLDER_H
#define NEUROSHARD_TEST_COSTMODEL_TEMPORARYFOLDER_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace neuroshard::test {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = ::testing::TempDir() + "neuroshard-XXXXXX";
    folder = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;

  const std::string &path() const { return folder; }
  std::string file(const std::string &name) const {
    return folder + "/" + name;
  }

private:
  std::string folder;
};

inline std::string slurp(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline void spill(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_COSTMODEL_TEMPORARYFOLDER_H
