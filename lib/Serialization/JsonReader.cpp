//===- JsonReader.cpp - Reading JSON objects field by field ---------------===//

#include "JsonReader.h"

#include "neuroshard/Support/InputLimits.h"

#include <algorithm>
#include <new>
#include <utility>

using namespace neuroshard;
using namespace neuroshard::json;

/// A file with everything wrong should not print for minutes.
static constexpr size_t kMaxErrors = 50;

namespace {

/// The library's own message begins with "[json.exception.parse_error.101] ",
/// which says nothing to a user.
std::string withoutPrefix(std::string message) {
  size_t end = message.find("] ");
  if (end != std::string::npos)
    message.erase(0, end + 2);
  return message;
}

/// Builds the value of a text and notes a key that an object has twice, of
/// which Json::parse() silently keeps one.
class Builder final : public nlohmann::json_sax<Json> {
public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override {
    return add(value);
  }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &value) override { return add(std::move(value)); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool key(string_t &name) override {
    auto [entry, isNew] = parents.back()->emplace(name, nullptr);
    if (!isNew && duplicate.empty())
      duplicate = "an object has the field '" + name + "' twice" + atPlace();
    member = &*entry;
    return true;
  }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::json::exception &found) override {
    error = withoutPrefix(found.what());
    // Errors of syntax have line and column.
    if (dynamic_cast<const nlohmann::json::out_of_range *>(&found))
      error += atPlace();
    return false;
  }

  Json root;
  /// What is wrong; "": nothing.
  std::string error, duplicate;

private:
  template <typename Value> bool add(Value &&value) {
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json container) {
    parents.push_back(&place(std::move(container)));
    return true;
  }
  bool close() {
    parents.pop_back();
    return true;
  }
  /// Puts a value where the text has it.
  template <typename Value> Json &place(Value &&value) {
    if (!parents.empty() && parents.back()->is_array())
      return parents.back()->emplace_back(std::forward<Value>(value));
    Json &target = parents.empty() ? root : *member;
    return target = Json(std::forward<Value>(value));
  }

  /// Which of the lists and objects is read: ", at tables[3]".
  std::string atPlace() const {
    std::string text;
    for (size_t i = 0; i + 1 < parents.size(); ++i) {
      const Json &outer = *parents[i];
      if (outer.is_array()) {
        text += "[" + std::to_string(outer.size() - 1) + "]";
        continue;
      }
      for (const auto &[key, value] : outer.items())
        if (&value == parents[i + 1])
          text += (text.empty() ? "" : ".") + key;
    }
    return text.empty() ? "" : ", at " + text;
  }

  /// The lists and objects that have not ended, outermost first.
  std::vector<Json *> parents;
  /// Of the innermost object: the value of the key that was read last.
  Json *member = nullptr;
};

} // namespace

Expected<Json> neuroshard::json::parse(std::string_view text) {
  if (std::string error = jsonLimitError(text); !error.empty())
    return failure("json", error);
  try {
    Builder builder;
    Json::sax_parse(text.begin(), text.end(), &builder);
    for (const std::string &error : {builder.error, builder.duplicate})
      if (!error.empty())
        return failure("json", error);
    return std::move(builder.root);
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

bool Reader::isFull() const { return errors.size() >= kMaxErrors; }

void Reader::error(const Path &path, std::string message) {
  if (isFull())
    return;
  errors.push_back({path.str(), std::move(message)});
  unread.push_back(path.str());
}

void Reader::missing(const Path &object, std::string_view key) {
  if (isFull())
    return;
  errors.push_back({object.str(), "missing field '" + std::string(key) + "'"});
  unread.push_back(Path(object, key).str());
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
    reader.missing(path, key);
  return value;
}

void neuroshard::json::readSchema(Object &object, std::string_view expected) {
  std::string schema;
  if (object.required("schema", schema) && schema != expected)
    object.reader.error(Path(object.path, "schema"),
                        "expected '" + std::string(expected) + "', got: '" +
                            schema + "'");
}
