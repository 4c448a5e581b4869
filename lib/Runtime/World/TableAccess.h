//===- TableAccess.h - Tables over all their shards -------------*- C++ -*-===//
//
// Reads and writes rows of a table, or of its optimizer state, whatever shards
// and devices they lie on. All functions throw a RuntimeError on failure.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_WORLD_TABLEACCESS_H
#define NEUROSHARD_LIB_RUNTIME_WORLD_TABLEACCESS_H

#include "World.h"

namespace neuroshard::runtime {

void writeTable(nsrt_world &world, int32_t table, Range rows,
                const std::byte *values);
void readTable(nsrt_world &world, int32_t table, Range rows, std::byte *values);
/// f32 values per row of a state array, as nsrt_table_info describes it.
int64_t stateWidth(const Manifest &manifest, int32_t table, int32_t state);
void writeState(nsrt_world &world, int32_t table, int32_t state, Range rows,
                const float *values);
void readState(nsrt_world &world, int32_t table, int32_t state, Range rows,
               float *values);
void initializeTable(nsrt_world &world, int32_t table, uint64_t seed);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_WORLD_TABLEACCESS_H
