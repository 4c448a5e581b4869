//===- RowFile.cpp - The rows of a shard in a file ------------------------===//

#include "RowFile.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <iomanip>
#include <ios>
#include <string>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace neuroshard::runtime {

namespace {

/// A file without a name.
int openUnnamed(const std::string &directory, const std::string &shard) {
  int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string path = directory + "/neuroshard-XXXXXX";
    file = mkostemp(path.data(), O_CLOEXEC);
    if (file >= 0)
      unlink(path.c_str());
  }
  if (file < 0)
    fail("cannot create the file of shard \"", shard, "\" in directory \"",
         directory, "\": ", std::strerror(errno));
  return file;
}

/// Takes the room now, so that no step fails for want of it.
void reserve(int file, int64_t bytes, const std::string &directory,
             const std::string &shard) {
  int error = posix_fallocate(file, 0, bytes);
  if (error == 0)
    return;
  struct statvfs disk{};
  double free = statvfs(directory.c_str(), &disk) == 0
                    ? static_cast<double>(disk.f_bavail) *
                          static_cast<double>(disk.f_frsize)
                    : 0;
  close(file);
  fail(std::fixed, std::setprecision(2), "shard \"", shard, "\" needs ",
       static_cast<double>(bytes) / 0x1p30, " GiB in directory \"", directory,
       "\", which has ", free / 0x1p30, " GiB left: ", std::strerror(error));
}

} // namespace

RowFile::RowFile(const std::string &directory, const std::string &shard,
                 int64_t rows, int64_t bytesOfRow)
    : numRows(rows), stride(bytesOfRow), file(openUnnamed(directory, shard)) {
  reserve(file, bytes(), directory, shard);
  void *address = mmap(nullptr, static_cast<size_t>(bytes()),
                       PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) {
    int error = errno;
    close(file);
    fail("cannot map the file of shard \"", shard,
         "\": ", std::strerror(error));
  }
  mapping = static_cast<std::byte *>(address);
}

RowFile::~RowFile() {
  munmap(mapping, static_cast<size_t>(bytes()));
  close(file);
}

/// Whether the system has the pages of a row in memory.
bool RowFile::isResident(int64_t row) const {
  constexpr int64_t kPageBytes = 4096, kMostPages = 16;
  int64_t begin = row * stride / kPageBytes * kPageBytes;
  int64_t pages = ceilDivide((row + 1) * stride - begin, kPageBytes);
  std::array<unsigned char, kMostPages> found{};
  return pages <= kMostPages &&
         mincore(mapping + begin, static_cast<size_t>(pages * kPageBytes),
                 found.data()) == 0 &&
         std::all_of(found.begin(), found.begin() + pages,
                     [](unsigned char page) { return page & 1; });
}

/// Without a call of the system.
void RowFile::copy(IoDirection direction, const CachedRow &row,
                   std::span<const RecordPart> parts) const {
  std::byte *record = mapping + row.row * stride;
  for (const RecordPart &part : parts) {
    std::byte *cached = part.first + row.place * part.bytes;
    if (direction == IoDirection::Read)
      std::memcpy(cached, record + part.offset,
                  static_cast<size_t>(part.bytes));
    else
      std::memcpy(record + part.offset, cached,
                  static_cast<size_t>(part.bytes));
  }
}

void RowFile::transfer(RowIo &io, IoDirection direction,
                       std::span<const CachedRow> rows,
                       std::span<const RecordPart> parts) const {
  std::vector<FileRange> ranges;
  for (const CachedRow &row : rows) {
    if (isResident(row.row)) {
      copy(direction, row, parts);
      continue;
    }
    FileRange &range = ranges.emplace_back();
    range.offset = row.row * stride;
    for (const RecordPart &part : parts) {
      range.parts[static_cast<size_t>(range.numParts++)] = {
          part.first + row.place * part.bytes, static_cast<size_t>(part.bytes)};
      range.bytes += part.bytes;
    }
  }
  io.run(file, direction, ranges);
}

} // namespace neuroshard::runtime
