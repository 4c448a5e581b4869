# How our targets are made: include paths, warnings as errors, sanitizers, and which
# of the two installed groups (Core, Compiler) a library belongs to.

add_library(neuroshard_options INTERFACE)
target_compile_options(neuroshard_options INTERFACE -Wall -Wextra
  # Those who install a package have compilers that nobody here has seen: GCC 12 warns without reason.
  $<$<NOT:$<BOOL:${NEUROSHARD_WHEEL}>>:-Werror>
  # std::stable_sort of GCC 12's library uses what that library marks as deprecated.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
if(NEUROSHARD_SANITIZE)
  # A run-time finding ends the program, so that no test passes over one.
  target_compile_options(neuroshard_options INTERFACE
    -fsanitize=${NEUROSHARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_sources(neuroshard_options INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${PROJECT_SOURCE_DIR}/cmake/SanitizerDefaults.cpp>)
  # Also for those who link our static libraries.
  add_link_options(-fsanitize=${NEUROSHARD_SANITIZE})
endif()

# What most files of libraries without MLIR include.
function(neuroshard_add_core_headers)
  neuroshard_add_precompiled_headers(core
    <algorithm>
    <array>
    <chrono>
    <cmath>
    <condition_variable>
    <cstdint>
    <filesystem>
    <functional>
    <limits>
    <map>
    <memory>
    <mutex>
    <nlohmann/json.hpp>
    <numeric>
    <optional>
    <random>
    <set>
    <span>
    <sstream>
    <string>
    <string_view>
    <thread>
    <tl/expected.hpp>
    <unordered_map>
    <utility>
    <vector>)
  neuroshard_link_headers(core nlohmann_json::nlohmann_json tl::expected)
endfunction()

# Tests are seldom slow, and a third as long to compile without optimisation. What a test
# computes much with lies in a library.
add_library(neuroshard_test_options INTERFACE)
target_compile_options(neuroshard_test_options INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O0>)

function(neuroshard_add_test_headers)
  neuroshard_add_precompiled_headers(test
    <gmock/gmock.h>
    <gtest/gtest.h>
    <nlohmann/json.hpp>
    <algorithm>
    <cmath>
    <filesystem>
    <map>
    <numeric>
    <random>
    <set>
    <sstream>
    <tl/expected.hpp>
    <vector>)
  neuroshard_link_headers(test
    GTest::gtest GTest::gmock nlohmann_json::nlohmann_json tl::expected neuroshard_test_options)
endfunction()

# Everything that a user runs or loads, without the tests, and what the demo runs of that.
add_custom_target(neuroshard-tools)
add_custom_target(neuroshard-demo)

# Libraries that need no LLVM are exported as one group, those that do as another, so
# that a project without LLVM can still use the planner.
define_property(GLOBAL PROPERTY NEUROSHARD_CORE_COMPONENTS BRIEF_DOCS "Installed, without LLVM")
define_property(GLOBAL PROPERTY NEUROSHARD_COMPILER_COMPONENTS BRIEF_DOCS "Installed, with LLVM")

# neuroshard_export_library(NAME GROUP)
# Makes NeuroShardFoo usable as NeuroShard::Foo here and, once installed, elsewhere.
function(neuroshard_export_library name group)
  string(REGEX REPLACE "^NeuroShard" "" component ${name})
  add_library(NeuroShard::${component} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${component})
  string(TOUPPER ${group} group_upper)
  set_property(GLOBAL APPEND PROPERTY NEUROSHARD_${group_upper}_COMPONENTS ${component})
  install(TARGETS ${name} EXPORT NeuroShard${group}Targets)
endfunction()

# neuroshard_add_library(NAME SOURCES... [SHARED] [LINK targets...])
# A library without MLIR; exceptions are on.
function(neuroshard_add_library name)
  cmake_parse_arguments(ARG "SHARED" "" "LINK" ${ARGN})
  if(ARG_SHARED)
    add_library(${name} SHARED ${ARG_UNPARSED_ARGUMENTS})
    add_dependencies(neuroshard-tools ${name})
  else()
    add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  endif()
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Private headers are named by their path in the library.
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:neuroshard_options>)
  neuroshard_precompile(${name} core)
  neuroshard_export_library(${name} Core)
endfunction()

# neuroshard_add_tool(NAME SOURCES... LINK targets...)
# A program without MLIR.
function(neuroshard_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} neuroshard_options)
  neuroshard_precompile(${name} core)
  add_dependencies(neuroshard-tools ${name})
endfunction()

# A shared library's symbols are those of a version script in its folder, and no others.
function(neuroshard_export_only name version_script)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/${version_script})
  target_link_options(${name} PRIVATE LINKER:--version-script=${script})
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${script})
endfunction()

# All that the unit tests and the FileCheck tests run.
add_custom_target(neuroshard-tests)

# neuroshard_add_unit_test(NAME SOURCES... LINK targets...)
# A GoogleTest program, run by ctest under its own name.
function(neuroshard_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main
    neuroshard_options neuroshard_test_options)
  neuroshard_precompile(${name} test)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/Unit)
  add_test(NAME ${name} COMMAND ${name})
  add_dependencies(neuroshard-tests ${name})
endfunction()
