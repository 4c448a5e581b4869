//===- JsonReader.h - Reading JSON objects field by field -------*- C++ -*-===//
///
/// \file
/// A reader that names the path of everything it refuses. Paths are built only
/// when something is wrong.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_SERIALIZATION_JSONREADER_H
#define NEUROSHARD_LIB_SERIALIZATION_JSONREADER_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Serialization/Files.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard::json {

using Json = nlohmann::ordered_json;

/// Parses text; a syntax error gives line and column.
Expected<Json> parse(std::string_view text);

/// A place in a document: a chain up to the root.
class Path {
public:
  Path() = default;
  Path(const Path &parent, std::string_view key) : parent(&parent), key(key) {}
  Path(const Path &parent, size_t index) : parent(&parent), index(index) {}
  std::string str() const;

private:
  const Path *parent = nullptr;
  std::string_view key;
  size_t index = 0;
};

/// A value of a given type at a path, or a diagnostic.
class Reader {
public:
  explicit Reader(Diagnostics &errors) : errors(errors) {}

  bool read(const Json &value, const Path &path, std::string &out);
  bool read(const Json &value, const Path &path, bool &out);
  bool read(const Json &value, const Path &path, double &out);
  bool read(const Json &value, const Path &path, int64_t &out);
  bool read(const Json &value, const Path &path, int &out);
  bool read(const Json &value, const Path &path, uint64_t &out);

  /// A list; `readItem(item, path)` for each of its items.
  template <typename ReadItem>
  void list(const Json &value, const Path &path, ReadItem readItem) {
    if (!value.is_array())
      return wrongType(value, path, "a list");
    size_t index = 0;
    for (const Json &item : value)
      readItem(item, Path(path, index++));
  }

  void wrongType(const Json &value, const Path &path, const char *expected);
  void error(const Path &path, std::string message);
  void missing(const Path &object, std::string_view key);
  /// Whether further errors are left out.
  bool isFull() const;

  Diagnostics &errors;
  /// The places of values that could not be read.
  std::vector<std::string> unread;
};

/// The fields of one object. Fields nobody asked for are errors; so are
/// required fields that are missing.
class Object {
public:
  Object(Reader &reader, const Json &value, const Path &path);
  /// Reports the fields nobody asked for.
  ~Object();
  Object(const Object &) = delete;
  Object &operator=(const Object &) = delete;

  /// Reads a field into `out`; leaves it alone when it is missing.
  template <typename T> bool optional(std::string_view key, T &out) {
    const Json *value = find(key);
    return value && reader.read(*value, Path(path, key), out);
  }
  template <typename T>
  bool optional(std::string_view key, std::optional<T> &out) {
    T value{};
    if (!optional(key, value))
      return false;
    out = value;
    return true;
  }
  template <typename T> bool required(std::string_view key, T &out) {
    const Json *value = findRequired(key);
    return value && reader.read(*value, Path(path, key), out);
  }
  /// A field that names an enumerator, read by `parse`.
  template <typename Enum, typename Parse>
  void name(std::string_view key, Enum &out, Parse parse) {
    std::string text;
    if (!optional(key, text))
      return;
    if (auto value = parse(text))
      out = *value;
    else
      reader.error(Path(path, key),
                   "expected " + choicesOf<Enum>() + ", got: '" + text + "'");
  }

  /// The field, marked as known, or null.
  const Json *find(std::string_view key);
  const Json *findRequired(std::string_view key);

  Reader &reader;
  const Path &path;

private:
  const Json *object = nullptr;
  std::vector<std::string_view> known;
};

/// What `parse` makes of a file's text; errors name the file.
template <typename T>
Expected<T> readAs(const std::string &path,
                   Expected<T> (*parse)(std::string_view)) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return tl::unexpected(text.error());
  Expected<T> value = parse(*text);
  if (value)
    return value;
  return tl::unexpected(inFile(path, value.error()));
}

/// Requires "schema" to be the given one.
void readSchema(Object &object, std::string_view expected);

} // namespace neuroshard::json

#endif // NEUROSHARD_LIB_SERIALIZATION_JSONREADER_H
