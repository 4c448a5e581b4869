//===- JsonValue.cpp - JSON with errors that name the place ---------------===//
//
// The checks behind each access.
//
//===----------------------------------------------------------------------===//

#include "JsonValue.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Support/InputLimits.h"

#include <limits>
#include <new>

using nlohmann::json;

namespace neuroshard {

json parseJson(const std::string &text, const char *document) {
  if (std::string error = jsonLimitError(text); !error.empty())
    fail(document, ": ", error);
  try {
    return json::parse(text);
  } catch (const json::exception &error) {
    fail(document, ": not valid JSON: ", error.what());
  } catch (const std::bad_alloc &) {
    fail(document, ": too little memory for ", text.size(), " bytes of JSON");
  }
}

JsonValue JsonValue::operator[](const char *field) const {
  if (!value.is_object())
    wrong("an object");
  auto it = value.find(field);
  if (it == value.end())
    fail(document, ": ", path, ": expected a field \"", field,
         "\", found none");
  return JsonValue(*it, document, path + "." + field);
}

bool JsonValue::has(const char *field) const {
  return value.is_object() && value.contains(field);
}

JsonValue JsonValue::at(size_t index) const {
  return JsonValue(value[index], document,
                   path + "[" + std::to_string(index) + "]");
}

int64_t JsonValue::integer(int64_t least, int64_t most) const {
  bool fits = value.is_number_integer() &&
              !(value.is_number_unsigned() &&
                value.get<uint64_t>() >
                    static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most)
    wrong("an integer from " + std::to_string(least) + " to " +
          std::to_string(most));
  return value.get<int64_t>();
}

int32_t JsonValue::index(size_t count) const {
  if (count == 0)
    wrong("an index into a list that is empty");
  return static_cast<int32_t>(integer(0, static_cast<int64_t>(count) - 1));
}

double JsonValue::number() const {
  if (!value.is_number())
    wrong("a number");
  return value.get<double>();
}

bool JsonValue::boolean() const {
  if (!value.is_boolean())
    wrong("true or false");
  return value.get<bool>();
}

std::string JsonValue::text() const {
  if (!value.is_string())
    wrong("a string");
  return value.get<std::string>();
}

void JsonValue::wrong(const std::string &expected) const {
  std::string found =
      value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (found.size() > 60)
    found = found.substr(0, 57) + "...";
  fail(document, ": ", path, ": expected ", expected, ", found ", found);
}

} // namespace neuroshard
