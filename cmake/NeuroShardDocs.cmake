# The reference pages that mlir-tblgen writes from the .td files.

# neuroshard_add_reference(PAGE.md TD-FILE mlir-tblgen options...)
# TD-FILE is relative to include/. Makes the page in the build folder; a .td file that
# the checkout does not have is an error at configure time.
function(neuroshard_add_reference page td)
  set(source ${PROJECT_SOURCE_DIR}/include/${td})
  set(output ${PROJECT_BINARY_DIR}/docs/reference/${page})
  list(TRANSFORM NEUROSHARD_TABLEGEN_INCLUDES PREPEND -I OUTPUT_VARIABLE includes)
  cmake_path(GET source PARENT_PATH folder)
  file(GLOB included CONFIGURE_DEPENDS ${folder}/*.td)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs/reference
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} ${includes} -I ${MLIR_INCLUDE_DIRS} ${source} -o ${output}
    DEPENDS ${source} ${included}
    COMMENT "Generating docs/reference/${page}"
    VERBATIM)
  set_property(GLOBAL APPEND PROPERTY NEUROSHARD_REFERENCE_PAGES ${output})
endfunction()

# Defines neuroshard-reference (part of the build: makes the pages in the build folder)
# and neuroshard-doc (copies them to docs/reference, where they are committed).
function(neuroshard_finish_reference)
  get_property(pages GLOBAL PROPERTY NEUROSHARD_REFERENCE_PAGES)
  add_custom_target(neuroshard-reference ALL DEPENDS ${pages})
  add_custom_target(neuroshard-doc
    COMMAND ${CMAKE_COMMAND} -E copy_directory
      ${PROJECT_BINARY_DIR}/docs/reference ${PROJECT_SOURCE_DIR}/docs/reference
    DEPENDS neuroshard-reference
    COMMENT "Updating docs/reference"
    VERBATIM)
endfunction()
