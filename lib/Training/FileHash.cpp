//===- FileHash.cpp - SHA-1 of a file -------------------------------------===//

#include "neuroshard/Training/FileHash.h"

#include <c10/util/hash.h>

#include <fstream>
#include <sstream>

using namespace neuroshard;

Expected<std::string> neuroshard::fileSha1(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file)
    return failure(path, "cannot be read");
  return c10::sha1(bytes.str()).str();
}
