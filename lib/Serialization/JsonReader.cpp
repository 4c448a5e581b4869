//===- JsonReader.cpp - Reading JSON objects field by field ---------------===//

#include "JsonReader.h"

#include "neuroshard/Support/InputLimits.h"

#include <algorithm>
#include <new>
#include <set>

using namespace neuroshard;
using namespace neuroshard::json;

/// A file with everything wrong should not print for minutes.
static constexpr size_t kMaxErrors = 50;

namespace {

/// Finds a key that an object has twice, of which JSON libraries silently keep
/// one. It reads the text by itself: the callback of Json::parse() looks at all
/// items of a list again after each.
class DuplicateKeys : public nlohmann::json_sax<Json> {
public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool start_object(size_t) override {
    keys.emplace_back();
    return true;
  }
  bool end_object() override {
    keys.pop_back();
    return true;
  }
  bool key(string_t &name) override {
    bool isNew = keys.back().insert(name).second;
    if (!isNew)
      duplicate = name;
    return isNew;
  }
  /// Json::parse() says what is wrong.
  bool parse_error(size_t, const std::string &,
                   const nlohmann::json::exception &) override {
    return false;
  }

  std::optional<std::string> duplicate;

private:
  std::vector<std::set<std::string>> keys;
};

} // namespace

Expected<Json> neuroshard::json::parse(std::string_view text) {
  if (std::string error = jsonLimitError(text); !error.empty())
    return failure("json", error);
  try {
    Json root = Json::parse(text.begin(), text.end());
    DuplicateKeys keys;
    Json::sax_parse(text.begin(), text.end(), &keys);
    if (keys.duplicate)
      return failure("json",
                     "an object has the field '" + *keys.duplicate + "' twice");
    return root;
  } catch (const nlohmann::json::exception &error) {
    // The library's own prefix, "[json.exception.parse_error.101] ", says
    // nothing to a user.
    std::string message = error.what();
    size_t end = message.find("] ");
    if (end != std::string::npos)
      message.erase(0, end + 2);
    return failure("json", message);
  } catch (const std::bad_alloc &) {
    return failure("json", "too little memory for " +
                               std::to_string(text.size()) + " bytes of JSON");
  } catch (const std::exception &error) {
    return failure("json", error.what());
  }
}

std::string Path::str() const {
  if (!parent)
    return "";
  std::string text = parent->str();
  if (key.empty())
    return text + "[" + std::to_string(index) + "]";
  return (text.empty() ? "" : text + ".") + std::string(key);
}

void Reader::error(const Path &path, std::string message) {
  if (errors.size() < kMaxErrors)
    errors.push_back({path.str(), std::move(message)});
}

void Reader::wrongType(const Json &value, const Path &path,
                       const char *expected) {
  std::string found =
      value.is_string() || value.is_number() || value.is_boolean()
          ? value.dump(-1, ' ', false, Json::error_handler_t::replace)
          : std::string(value.type_name());
  error(path, std::string("expected ") + expected + ", got: " + found);
}

bool Reader::read(const Json &value, const Path &path, std::string &out) {
  if (!value.is_string())
    return wrongType(value, path, "a text"), false;
  out = value.get_ref<const std::string &>();
  return true;
}

bool Reader::read(const Json &value, const Path &path, bool &out) {
  if (!value.is_boolean())
    return wrongType(value, path, "true or false"), false;
  out = value.get<bool>();
  return true;
}

bool Reader::read(const Json &value, const Path &path, double &out) {
  if (!value.is_number())
    return wrongType(value, path, "a number"), false;
  out = value.get<double>();
  return true;
}

bool Reader::read(const Json &value, const Path &path, uint64_t &out) {
  if (!value.is_number_unsigned())
    return wrongType(value, path, "a whole number of at least 0"), false;
  out = value.get<uint64_t>();
  return true;
}

bool Reader::read(const Json &value, const Path &path, int64_t &out) {
  constexpr auto kLargest =
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  bool tooLarge =
      value.is_number_unsigned() && value.get<uint64_t>() > kLargest;
  if (!value.is_number_integer() || tooLarge)
    return wrongType(value, path, "a whole number below 2^63"), false;
  out = value.get<int64_t>();
  return true;
}

bool Reader::read(const Json &value, const Path &path, int &out) {
  int64_t wide = 0;
  if (!read(value, path, wide))
    return false;
  if (wide < std::numeric_limits<int>::min() ||
      wide > std::numeric_limits<int>::max())
    return wrongType(value, path, "a whole number below 2^31"), false;
  out = static_cast<int>(wide);
  return true;
}

Object::Object(Reader &reader, const Json &value, const Path &path)
    : reader(reader), path(path) {
  if (value.is_object())
    object = &value;
  else
    reader.wrongType(value, path, "an object");
}

Object::~Object() {
  if (!object)
    return;
  for (const auto &item : object->items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      reader.error(Path(path, item.key()), "unknown field");
}

const Json *Object::find(std::string_view key) {
  known.push_back(key);
  if (!object)
    return nullptr;
  for (auto it = object->begin(); it != object->end(); ++it)
    if (it.key() == key)
      return &it.value();
  return nullptr;
}

const Json *Object::findRequired(std::string_view key) {
  const Json *value = find(key);
  if (!value && object)
    reader.error(path, "missing field '" + std::string(key) + "'");
  return value;
}

void neuroshard::json::readSchema(Object &object, std::string_view expected) {
  std::string schema;
  if (object.required("schema", schema) && schema != expected)
    object.reader.error(Path(object.path, "schema"),
                        "expected '" + std::string(expected) + "', got: '" +
                            schema + "'");
}
