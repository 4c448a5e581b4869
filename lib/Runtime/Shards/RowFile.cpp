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

/// Takes the room now, so that no step fails for want of it; but none of a disk
/// that has too little.
void reserve(int file, int64_t bytes, const std::string &directory,
             const std::string &shard) {
  struct statvfs disk{};
  double needed = static_cast<double>(bytes), free = 0;
  bool isKnown = fstatvfs(file, &disk) == 0;
  if (isKnown)
    free =
        static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  int error =
      isKnown && free < needed ? ENOSPC : posix_fallocate(file, 0, bytes);
  if (error == 0)
    return;
  close(file);
  fail(std::fixed, std::setprecision(2), "shard \"", shard, "\" needs ",
       needed / 0x1p20, " MiB in directory \"", directory, "\", which has ",
       free / 0x1p20, " MiB left: ", std::strerror(error));
}

/// The least that can be moved past the system's pages.
int64_t blockBytesOf(int directFile) {
  constexpr int64_t kLeast = 512;
  alignas(kPageBytes) std::array<std::byte, kPageBytes> block;
  return pread(directFile, block.data(), kLeast, kLeast) == kLeast ? kLeast
                                                                   : kPageBytes;
}

} // namespace

RowFile::RowFile(const std::string &directory, const std::string &shard,
                 int64_t rows, int64_t bytesOfRow)
    : RowStore(rows, bytesOfRow), file(openUnnamed(directory, shard)) {
  reserve(file, roundUp(bytes(), kPageBytes), directory, shard);
  void *address = mmap(nullptr, static_cast<size_t>(bytes()),
                       PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) {
    int error = errno;
    close(file);
    fail("cannot map the file of shard \"", shard,
         "\": ", std::strerror(error));
  }
  mapping = static_cast<std::byte *>(address);
  if (stride + 2 * kPageBytes > RowIo::kStagingBytes)
    return;
  std::string name = "/proc/self/fd/" + std::to_string(file);
  directFile = open(name.c_str(), O_DIRECT | O_RDWR | O_CLOEXEC);
  blockBytes = blockBytesOf(directFile);
}

RowFile::~RowFile() {
  munmap(mapping, static_cast<size_t>(bytes()));
  close(file);
  if (directFile >= 0)
    close(directFile);
}

/// Whether the system has the pages of a row in memory.
bool RowFile::isResident(int64_t row) const {
  constexpr int64_t kMostPages = 16;
  int64_t begin = row * stride / kPageBytes * kPageBytes;
  int64_t pages = ceilDivide((row + 1) * stride - begin, kPageBytes);
  std::array<unsigned char, kMostPages> found{};
  return pages <= kMostPages &&
         mincore(mapping + begin, static_cast<size_t>(pages * kPageBytes),
                 found.data()) == 0 &&
         std::all_of(found.begin(), found.begin() + pages,
                     [](unsigned char page) { return page & 1; });
}

void RowFile::transfer(RowIo &io, IoDirection direction,
                       std::span<const CachedRow> rows,
                       std::span<const RecordPart> parts) const {
  std::vector<CachedRow> others;
  for (const CachedRow &row : rows)
    if (isResident(row.row)) // without a call of the system
      copyRecord(direction, row, mapping + row.row * stride, parts);
    else
      others.push_back(row);
  if (directFile >= 0)
    transferDirectly(io, direction, std::move(others), parts);
  else
    transferPages(io, direction, others, parts);
}

void RowFile::transferPages(RowIo &io, IoDirection direction,
                            std::span<const CachedRow> rows,
                            std::span<const RecordPart> parts) const {
  std::vector<FileRange> ranges;
  for (const CachedRow &row : rows) {
    FileRange &range = ranges.emplace_back();
    range.offset = row.row * stride;
    for (const RecordPart &part : parts) {
      range.parts[static_cast<size_t>(range.numParts++)] = {
          part.first + row.place * part.bytes, static_cast<size_t>(part.bytes)};
      range.bytes += part.bytes;
    }
  }
  if (direction == IoDirection::Read)
    io.run(file, direction, ranges);
  else
    io.writePages(file, ranges);
}

namespace {

/// Rows whose blocks of the disk touch.
struct StagedRows {
  int64_t begin; ///< in the file.
  int64_t end;
  std::span<const CachedRow> rows;
};

} // namespace

/// Reads whole blocks of the disk, changes them if rows are written, and writes
/// them back: as many at a time as have room in the staging memory. A block is
/// in one group at a time, so that no change of it is lost.
void RowFile::transferDirectly(RowIo &io, IoDirection direction,
                               std::vector<CachedRow> rows,
                               std::span<const RecordPart> parts) const {
  std::ranges::sort(rows, {}, &CachedRow::row);
  std::span<std::byte> room = io.staging();
  auto most = static_cast<int64_t>(room.size());
  for (size_t next = 0; next < rows.size();) {
    std::vector<StagedRows> groups;
    int64_t bytes = 0;
    for (; next < rows.size(); ++next) {
      int64_t begin = rows[next].row * stride / blockBytes * blockBytes;
      int64_t end = roundUp((rows[next].row + 1) * stride, blockBytes);
      bool touches = !groups.empty() && begin < groups.back().end;
      int64_t more = end - (touches ? groups.back().end : begin);
      if (bytes + more > most)
        break;
      bytes += more;
      if (touches) {
        StagedRows &group = groups.back();
        group = {group.begin, end, {group.rows.data(), group.rows.size() + 1}};
      } else {
        groups.push_back({begin, end, {&rows[next], 1}});
      }
    }
    auto rangesOf = [&] {
      std::vector<FileRange> ranges;
      std::byte *staged = room.data();
      for (const StagedRows &group : groups) {
        int64_t size = group.end - group.begin;
        FileRange &range = ranges.emplace_back();
        range = {group.begin, size, {}, 1};
        range.parts[0] = {staged, static_cast<size_t>(size)};
        staged += size;
      }
      return ranges;
    };
    std::vector<FileRange> ranges = rangesOf();
    io.run(directFile, IoDirection::Read, ranges);
    std::byte *staged = room.data();
    for (const StagedRows &group : groups) {
      for (const CachedRow &row : group.rows)
        copyRecord(direction, row, staged + row.row * stride - group.begin,
                   parts);
      staged += group.end - group.begin;
    }
    if (direction == IoDirection::Write) {
      ranges = rangesOf();
      io.run(directFile, direction, ranges);
    }
  }
}

} // namespace neuroshard::runtime
