# Precompiled headers. Most of the time to compile a file goes into headers of others: those are
# parsed once for each kind of target here.

# neuroshard_add_precompiled_headers(KIND headers...)
# Makes the library neuroshard_KIND_headers, whose precompiled headers targets of the kind use.
function(neuroshard_add_precompiled_headers kind)
  if(NOT NEUROSHARD_PRECOMPILE)
    add_library(neuroshard_${kind}_headers INTERFACE)
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/neuroshard_${kind}_headers.cpp CONTENT "")
  add_library(neuroshard_${kind}_headers OBJECT ${PROJECT_BINARY_DIR}/neuroshard_${kind}_headers.cpp)
  target_precompile_headers(neuroshard_${kind}_headers PRIVATE ${ARGN})
  target_compile_features(neuroshard_${kind}_headers PRIVATE cxx_std_20)
endfunction()

# neuroshard_precompile(NAME KIND)
# A target that is compiled with the flags of its kind.
function(neuroshard_precompile name kind)
  if(NEUROSHARD_PRECOMPILE AND NOT name STREQUAL "neuroshard_${kind}_headers")
    target_precompile_headers(${name} REUSE_FROM neuroshard_${kind}_headers)
  endif()
endfunction()

# neuroshard_link_headers(KIND targets...)
# Where the headers of a kind lie.
function(neuroshard_link_headers kind)
  if(NEUROSHARD_PRECOMPILE)
    target_link_libraries(neuroshard_${kind}_headers PRIVATE ${ARGN} neuroshard_options)
  endif()
endfunction()
