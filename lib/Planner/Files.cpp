//===- Files.cpp - Whole files in and out ---------------------------------===//

#include "neuroshard/Planner/Json.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace neuroshard;

Expected<std::string> neuroshard::readFile(const std::string &path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return failure(path, "expected a file, got a directory");
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return failure(path, std::string("cannot open: ") + std::strerror(errno));
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad())
    return failure(path, "cannot read");
  return std::move(text).str();
}

Expected<void> neuroshard::writeFile(const std::string &path,
                                     std::string_view text) {
  std::string temporary = path + ".partial";
  {
    std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
    if (!stream)
      return failure(path,
                     std::string("cannot write: ") + std::strerror(errno));
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    stream.flush();
    if (!stream) {
      std::remove(temporary.c_str());
      return failure(path, "cannot write the whole file; is the disk full?");
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::remove(temporary.c_str());
    return failure(path, "cannot write: " + error.message());
  }
  return {};
}
