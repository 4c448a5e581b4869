# How our targets are made: include paths, warnings as errors, sanitizers.

add_library(neuroshard_options INTERFACE)
target_compile_options(neuroshard_options INTERFACE -Wall -Wextra -Werror)
if(NEUROSHARD_SANITIZE)
  target_compile_options(neuroshard_options INTERFACE
    -fsanitize=${NEUROSHARD_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(neuroshard_options INTERFACE -fsanitize=${NEUROSHARD_SANITIZE})
endif()

# neuroshard_add_library(NAME SOURCES... [SHARED] [LINK targets...])
# A library without MLIR; exceptions are on.
function(neuroshard_add_library name)
  cmake_parse_arguments(ARG "SHARED" "" "LINK" ${ARGN})
  if(ARG_SHARED)
    add_library(${name} SHARED ${ARG_UNPARSED_ARGUMENTS})
  else()
    add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  endif()
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:neuroshard_options>)
endfunction()

# neuroshard_add_unit_test(NAME SOURCES... LINK targets...)
# A GoogleTest program, run by ctest under its own name.
function(neuroshard_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main neuroshard_options)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/Unit)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
