//===- SafetensorsTest.cpp - Round trip and every kind of damage ----------===//

#include "neuroshard/CostModel/Safetensors.h"

#include "TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

class SafetensorsTest : public testing::Test {
protected:
  /// The error of reading a file of this header and data.
  std::string errorOf(const std::string &header, const std::string &data) {
    uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return errorOfBytes(bytes + header + data);
  }
  std::string errorOfBytes(const std::string &bytes) {
    spill(path, bytes);
    Expected<TensorFile> file = readTensorFile(path);
    if (file)
      return "no error";
    EXPECT_EQ(file.error().size(), 1u);
    EXPECT_EQ(file.error()[0].where, path);
    return file.error()[0].message;
  }

  TemporaryFolder folder;
  std::string path = folder.file("a.safetensors");
};

TEST_F(SafetensorsTest, RoundTrip) {
  TensorFile file;
  file.metadata = {{"schema", "x.v1"}, {"card", "{\"a\": \"\u00b5s\"}"}};
  std::array<float, 6> matrix = {1.5f, -2, 3, 4, 5e-40f, 6};
  std::array<double, 2> doubles = {0.1, 1e300};
  std::array<int64_t, 1> longs = {INT64_MIN};
  std::array<int32_t, 3> ints = {-1, 0, 7};
  std::array<uint8_t, 3> bytes = {0, 128, 255};
  file.tensors["f32"] = makeTensor<float>(matrix, {2, 3});
  file.tensors["f64"] = makeTensor<double>(doubles);
  file.tensors["i64"] = makeTensor<int64_t>(longs);
  file.tensors["i32"] = makeTensor<int32_t>(ints);
  file.tensors["u8"] = makeTensor<uint8_t>(bytes);
  file.tensors["none"] = makeTensor<double>({});
  ASSERT_TRUE(writeTensorFile(file, path));

  Expected<TensorFile> read = readTensorFile(path);
  ASSERT_TRUE(read) << toString(read.error());
  EXPECT_EQ(read->metadata, file.metadata);
  EXPECT_EQ(read->tensors.size(), 6u);
  EXPECT_THAT(*read->get<float>("f32", {2, 3}),
              testing::ElementsAreArray(matrix));
  EXPECT_THAT(*read->get<float>("f32", {-1, 3}), testing::SizeIs(6));
  EXPECT_THAT(*read->get<double>("f64", {2}),
              testing::ElementsAreArray(doubles));
  EXPECT_THAT(*read->get<int64_t>("i64", {1}),
              testing::ElementsAreArray(longs));
  EXPECT_THAT(*read->get<int32_t>("i32", {3}), testing::ElementsAreArray(ints));
  EXPECT_THAT(*read->get<uint8_t>("u8", {3}), testing::ElementsAreArray(bytes));
  EXPECT_THAT(*read->get<double>("none", {0}), testing::IsEmpty());
  EXPECT_EQ(read->tensors["f32"].elementCount(), 6);
}

TEST_F(SafetensorsTest, HeaderIsTheFormats) {
  TensorFile file;
  std::array<uint8_t, 1> small = {7};
  std::array<float, 1> large = {1};
  file.tensors["a"] = makeTensor<uint8_t>(small);
  file.tensors["b"] = makeTensor<float>(large);
  ASSERT_TRUE(writeTensorFile(file, path));
  std::string bytes = slurp(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  // The wider type first, so that every tensor is aligned.
  EXPECT_THAT(bytes.substr(8, length),
              testing::StartsWith(
                  R"({"a":{"data_offsets":[4,5],"dtype":"U8","shape":[1]},)"
                  R"("b":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})"));
  EXPECT_EQ(bytes.size(), 8 + length + 5);
}

TEST_F(SafetensorsTest, GetSaysWhatWasExpected) {
  TensorFile file;
  std::array<float, 6> values = {};
  file.tensors["w"] = makeTensor<float>(values, {2, 3});
  EXPECT_EQ(toString(file.get<float>("w", {3, 2}).error()),
            "w: expected F32 [3, 2], got F32 [2, 3]");
  EXPECT_EQ(toString(file.get<double>("w", {2, -1}).error()),
            "w: expected F64 [2, any], got F32 [2, 3]");
  EXPECT_EQ(toString(file.get<float>("v", {1}).error()),
            "v: no such tensor, expected F32 [1]");
  EXPECT_EQ(toString(file.getMetadata("schema").error()),
            "metadata: no entry 'schema'");
}

TEST_F(SafetensorsTest, RefusesToWriteAShapeThatDoesNotFit) {
  TensorFile file;
  std::array<float, 6> values = {};
  file.tensors["w"] = makeTensor<float>(values, {2, 2});
  Expected<void> written = writeTensorFile(file, path);
  ASSERT_FALSE(written);
  EXPECT_THAT(toString(written.error()),
              HasSubstr("tensor 'w': F32 [2, 2] does not fit its 24 bytes"));
}

TEST_F(SafetensorsTest, RefusesToWriteANameThatNoFileHas) {
  std::array<float, 1> values = {};
  for (const char *name : {"__metadata__", "\xff"}) {
    TensorFile file;
    file.tensors[name] = makeTensor<float>(values);
    Expected<void> written = writeTensorFile(file, path);
    ASSERT_FALSE(written) << name;
    EXPECT_THAT(toString(written.error()),
                HasSubstr("a name must be UTF-8 and another than "
                          "'__metadata__'; rename it"));
  }
}

TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  TensorFile file;
  std::array<double, 3> values = {1, 2, 3};
  file.tensors["w"] = makeTensor<double>(values);
  ASSERT_TRUE(writeTensorFile(file, path));
  std::string bytes = slurp(path);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THAT(errorOfBytes(bytes.substr(0, size)),
                HasSubstr("not a sound safetensors file"))
        << size;
}

TEST_F(SafetensorsTest, DamagedHeaders) {
  EXPECT_THAT(errorOfBytes("text"), HasSubstr("4 bytes, expected at least 8"));
  EXPECT_THAT(errorOfBytes(std::string(16, '\xff')),
              HasSubstr("expected at most"));
  EXPECT_THAT(errorOf("{\"a\":", ""), HasSubstr("not a JSON object"));
  EXPECT_THAT(errorOf("[1]", ""), HasSubstr("not a JSON object"));
  EXPECT_THAT(errorOf(R"({"__metadata__": [1]})", ""),
              HasSubstr("not an object of strings"));
  EXPECT_THAT(errorOf(R"({"__metadata__": {"k": 1}})", ""),
              HasSubstr("metadata 'k' is not a string"));
  EXPECT_THAT(errorOf(R"({"a": 1})", ""), HasSubstr("not an object"));
}

TEST_F(SafetensorsTest, NestingHasALimit) {
  std::string deep = std::string(65, '[') + std::string(65, ']');
  EXPECT_THAT(errorOf(R"({"a": )" + deep + "}", ""),
              HasSubstr("the header has lists and objects more than 64 deep"));
  // Metadata that is JSON in a text.
  EXPECT_THAT(
      errorOf(R"({"__metadata__": {"card": ")" + deep + R"("}})", ""),
      HasSubstr("metadata 'card' has lists and objects more than 64 deep"));
}

TEST_F(SafetensorsTest, DamagedEntries) {
  auto entry = [&](const std::string &text) {
    return errorOf("{\"a\": {" + text + "}}", "12345678");
  };
  EXPECT_THAT(entry(R"("shape": [1], "data_offsets": [0, 8])"),
              HasSubstr("'dtype' is missing"));
  EXPECT_THAT(entry(R"("dtype": "F8", "shape": [8], "data_offsets": [0, 8])"),
              HasSubstr("type 'F8', expected U8, I32, I64, F32 or F64"));
  EXPECT_THAT(entry(R"("dtype": "F64", "data_offsets": [0, 8])"),
              HasSubstr("'shape' is missing"));
  EXPECT_THAT(entry(R"("dtype": "F64", "shape": [-1], "data_offsets": [0, 8])"),
              HasSubstr("not a count: -1"));
  EXPECT_THAT(entry(R"("dtype": "F64", "shape": [1], "data_offsets": [0])"),
              HasSubstr("not a pair of counts"));
  EXPECT_THAT(entry(R"("dtype": "F64", "shape": [1], "data_offsets": [8, 0])"),
              HasSubstr("end before they begin"));
  EXPECT_THAT(entry(R"("dtype": "F64", "shape": [2], "data_offsets": [0, 16])"),
              HasSubstr("end at 16, but the file holds 8"));
  EXPECT_THAT(entry(R"("dtype": "F64", "shape": [2], "data_offsets": [0, 8])"),
              HasSubstr("F64 [2] does not fit its 8 bytes"));
  EXPECT_THAT(entry(R"("dtype": "F64", "data_offsets": [0, 8],)"
                    R"("shape": [4294967296, 4294967296])"),
              HasSubstr("does not fit its 8 bytes"));
  EXPECT_THAT(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [4, 8])"),
              HasSubstr("4 bytes before it belong to no tensor"));
  EXPECT_THAT(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [0, 4])"),
              HasSubstr("4 bytes at its end belong to no tensor"));
}

TEST_F(SafetensorsTest, Overlap) {
  EXPECT_THAT(
      errorOf(R"({"a": {"dtype": "U8", "shape": [5], "data_offsets": [0, 5]},)"
              R"("b": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}})",
              "12345678"),
      HasSubstr("tensors 'a' and 'b' overlap"));
}

TEST_F(SafetensorsTest, NoSuchFile) {
  Expected<TensorFile> file = readTensorFile(folder.file("none"));
  ASSERT_FALSE(file);
  EXPECT_THAT(toString(file.error()), HasSubstr("cannot open"));
}

} // namespace
