# Finds LLVM/MLIR 22 and defines how our MLIR libraries and tools are made.

# Debian's place is a hint only: -DMLIR_DIR=... names another LLVM. MLIR's version file
# accepts no bare major version, so the check is here.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "NeuroShard needs LLVM/MLIR 22, found ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}; "
    "set MLIR_DIR to the lib/cmake/mlir folder of LLVM 22")
endif()
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")

list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
# Link the distribution's shared libMLIR and libLLVM: small tools, quick links.
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_LINK_LLVM_DYLIB ON)
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND "${LLVM_DEFINITIONS}")

set(NEUROSHARD_TABLEGEN_INCLUDES ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

# neuroshard_add_mlir_library(NAME SOURCES... DEPENDS tablegen targets... LINK targets...)
# A library on MLIR: no exceptions, like LLVM itself. Also available as
# NeuroShard::NAME after installation.
function(neuroshard_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  neuroshard_mlir_target(${name})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  neuroshard_export_library(${name} Compiler)
endfunction()

# neuroshard_add_mlir_tool(NAME SOURCES... LINK targets...)
function(neuroshard_add_mlir_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  neuroshard_mlir_target(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  add_dependencies(neuroshard-tools ${name})
  install(TARGETS ${name})
endfunction()

# neuroshard_add_mlir_plugin(NAME SOURCES... EXPORTS version-script LINK targets...)
# libNAME.so, for MLIR's drivers to load. It links the shared libMLIR that they link, and
# keeps all symbols but its entry points to itself.
function(neuroshard_add_mlir_plugin name)
  cmake_parse_arguments(ARG "" "EXPORTS" "LINK" ${ARGN})
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  neuroshard_mlir_target(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  neuroshard_export_only(${name} ${ARG_EXPORTS})
  add_dependencies(neuroshard-tools ${name})
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# neuroshard_add_mlir_c_library(NAME SOURCES... EXPORTS version-script LINK targets...
#   [USE C libraries...])
# A shared library with a C interface; also NeuroShard::NAME after installation, whose users
# need MLIR's headers alone, and get the libraries of USE along.
function(neuroshard_add_mlir_c_library name)
  cmake_parse_arguments(ARG "" "EXPORTS" "LINK;USE" ${ARGN})
  add_library(${name} SHARED ${ARG_UNPARSED_ARGUMENTS})
  neuroshard_mlir_include(${name} PUBLIC)
  target_compile_definitions(${name} PRIVATE ${LLVM_DEFINITIONS_LIST})
  target_compile_options(${name} PRIVATE -fno-exceptions)
  list(APPEND ARG_LINK MLIR LLVM neuroshard_options)
  target_link_libraries(${name} PUBLIC ${ARG_USE} PRIVATE "$<BUILD_INTERFACE:${ARG_LINK}>")
  neuroshard_export_only(${name} ${ARG_EXPORTS})
  set_target_properties(${name} PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  add_dependencies(neuroshard-tools ${name})
  neuroshard_export_library(${name} Compiler)
endfunction()

function(neuroshard_mlir_include name visibility)
  if(NEUROSHARD_SANITIZE)
    # For SanitizerDefaults.cpp in the programs.
    target_compile_definitions(${name} ${visibility} $<BUILD_INTERFACE:NEUROSHARD_WITH_LLVM>)
  endif()
  target_include_directories(${name} ${visibility}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_include_directories(${name} SYSTEM ${visibility}
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<BUILD_INTERFACE:${MLIR_INCLUDE_DIRS}>
    $<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS}>)
endfunction()

function(neuroshard_mlir_target name)
  neuroshard_mlir_include(${name} PUBLIC)
  target_compile_definitions(${name} PUBLIC ${LLVM_DEFINITIONS_LIST})
  target_compile_options(${name} PRIVATE -fno-exceptions)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PUBLIC MLIR LLVM PRIVATE $<BUILD_INTERFACE:neuroshard_options>)
  neuroshard_precompile(${name} mlir)
endfunction()

# The dialects of most files, and those below them, which conversions lower to.
neuroshard_add_precompiled_headers(mlir
  <mlir/Bytecode/BytecodeOpInterface.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Bufferization/IR/Bufferization.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/GPU/IR/GPUDialect.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/LLVMIR/NVVMDialect.h>
  <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/MemRef/IR/MemRef.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Tensor/IR/Tensor.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/IR/DialectImplementation.h>
  <mlir/IR/OpImplementation.h>
  <mlir/IR/PatternMatch.h>
  <mlir/Interfaces/SideEffectInterfaces.h>
  <mlir/Pass/Pass.h>)
if(NEUROSHARD_PRECOMPILE)
  neuroshard_mlir_target(neuroshard_mlir_headers)
endif()
