//===- WorkloadErrorsTest.cpp - All errors of a workload at once ----------===//

#include "Support.h"
#include "neuroshard/Serialization/Json.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// All errors of a workload's text, a line each.
std::string errorsOf(const std::string &json) {
  Expected<ShardingProblem> parsed = parseWorkload(json);
  return parsed ? "" : text(parsed.error());
}

/// The errors of a workload with this table.
std::string errorsWith(const std::string &table, const std::string &rest = "") {
  return errorsOf(
      R"({"schema": "neuroshard.workload.v1", "batch": {"global_size": 8},
    "tables": [)" +
      table + R"(], "features": [])" + rest + "}");
}

TEST(WorkloadErrorsTest, FieldsThatCannotBeReadHideNoOtherErrors) {
  EXPECT_EQ(errorsWith(R"({"name": "a", "rows": -1, "dims": 4})",
                       R"(, "cache_load_factor": 7)"),
            "tables[0]: missing field 'dim'\ntables[0].dims: unknown field\n"
            "tables[0].rows: expected a whole number in [1, 281474976710656], "
            "got: -1\ncache_load_factor: expected a number in [0, 1], got: 7");
  // Rules that read a field that is missing, or its default, say nothing.
  EXPECT_EQ(errorsWith(R"({"name": "a", "rows": 1, "dim": 4,
                "dynamic_ids": 1, "id_candidates": 9})"),
            "tables[0].dynamic_ids: expected true or false, got: 1");
  EXPECT_EQ(errorsOf(R"({"schema": "neuroshard.workload.v1", "tables": [],
                        "features": []})"),
            "missing field 'batch'\ntables: expected at least one table");
}

} // namespace
