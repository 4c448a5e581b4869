//===- JsonValue.h - JSON with errors that name the place ------*- C++ -*-===//
//
// Reads the files of an artifact: every access checks, and every failure is a
// RuntimeError with the document, the path in it (`$.shards[3].rows`), what is
// expected and what was found.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_ARTIFACT_MANIFEST_JSONVALUE_H
#define NEUROSHARD_LIB_ARTIFACT_MANIFEST_JSONVALUE_H

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace neuroshard {

/// Throws a RuntimeError if `text` is not JSON. `document` is its name.
nlohmann::json parseJson(const std::string &text, const char *document);

/// A JSON value and the path that leads to it.
class JsonValue {
public:
  /// The whole of a document.
  JsonValue(const nlohmann::json &value, const char *document)
      : JsonValue(value, document, "$") {}

  JsonValue operator[](const char *field) const;
  bool has(const char *field) const;
  /// An element of an array that list() has read.
  JsonValue at(size_t index) const;

  template <typename Read> auto list(Read read) const {
    if (!value.is_array())
      wrong("an array");
    std::vector<decltype(read(*this))> result;
    for (size_t i = 0; i < value.size(); ++i)
      result.push_back(read(at(i)));
    return result;
  }

  /// A list of read(name, value) for each field of an object.
  template <typename Read> auto fields(Read read) const {
    if (!value.is_object())
      wrong("an object");
    std::vector<decltype(read(std::string(), *this))> result;
    for (const auto &[name, field] : value.items())
      result.push_back(
          read(name, JsonValue(field, document, path + "." + name)));
    return result;
  }

  bool isNull() const { return value.is_null(); }

  int64_t integer(int64_t least, int64_t most) const;
  /// An index into a list of `count` things.
  int32_t index(size_t count) const;
  double number() const;
  bool boolean() const;
  std::string text() const;

  template <typename T>
  T oneOf(std::initializer_list<std::pair<const char *, T>> choices) const {
    std::string names;
    for (const auto &[name, result] : choices) {
      if (value.is_string() && value.get<std::string>() == name)
        return result;
      names += (names.empty() ? "\"" : ", \"") + std::string(name) + "\"";
    }
    wrong("one of " + names);
  }

  /// One of `choices`, by its name.
  template <typename T, typename Name>
  T oneOfNames(std::initializer_list<T> choices, const Name &nameOf) const {
    std::string names;
    for (T choice : choices) {
      std::string name(nameOf(choice));
      if (value.is_string() && value.get<std::string>() == name)
        return choice;
      names += (names.empty() ? "\"" : ", \"") + name + "\"";
    }
    wrong("one of " + names);
  }

  [[noreturn]] void wrong(const std::string &expected) const;

private:
  JsonValue(const nlohmann::json &value, const char *document, std::string path)
      : value(value), document(document), path(std::move(path)) {}

  const nlohmann::json &value;
  const char *document;
  std::string path;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_MANIFEST_JSONVALUE_H
