# The reference pages that mlir-tblgen writes from the .td files.

# neuroshard_tablegen_doc(OUTPUT TD-FILE mlir-tblgen options...)
# Both files are absolute; OUTPUT follows every .td file in the folder of TD-FILE.
function(neuroshard_tablegen_doc output td)
  list(TRANSFORM NEUROSHARD_TABLEGEN_INCLUDES PREPEND -I OUTPUT_VARIABLE includes)
  cmake_path(GET td PARENT_PATH td_dir)
  cmake_path(GET output PARENT_PATH output_dir)
  file(GLOB dependencies CONFIGURE_DEPENDS ${td_dir}/*.td)
  if(td MATCHES "PlanPasses.td")
    list(APPEND dependencies NeuroShardPlanPassesIncGen
      ${PROJECT_BINARY_DIR}/include/neuroshard/Transforms/SearchOptions.td)
  endif()
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${output_dir}
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} ${includes} -I ${MLIR_INCLUDE_DIRS} ${td} -o ${output}
    DEPENDS ${dependencies}
    COMMENT "Documenting ${td}"
    VERBATIM)
endfunction()

# neuroshard_add_dialect_reference(PAGE.md TD-FILE DIALECT)
# TD-FILE is relative to include/.
function(neuroshard_add_dialect_reference page td dialect)
  set(output ${PROJECT_BINARY_DIR}/docs/reference/${page})
  neuroshard_tablegen_doc(${output} ${PROJECT_SOURCE_DIR}/include/${td}
    -gen-dialect-doc -dialect=${dialect})
  set_property(GLOBAL APPEND PROPERTY NEUROSHARD_REFERENCE_PAGES ${output})
endfunction()

# neuroshard_add_pass_reference(PAGE.md)
# One page on the passes of every Passes.td or SomePasses.td, with a section for each folder.
function(neuroshard_add_pass_reference page)
  set(output ${PROJECT_BINARY_DIR}/docs/reference/${page})
  set(parts_dir ${PROJECT_BINARY_DIR}/docs/passes)
  set(include_dir ${PROJECT_SOURCE_DIR}/include/neuroshard)
  file(CONFIGURE OUTPUT ${parts_dir}/title.md CONTENT "# Passes\n")
  set(parts ${parts_dir}/title.md)
  set(last_folder "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${include_dir}/*Passes.td)
  foreach(td IN LISTS sources)
    cmake_path(GET td PARENT_PATH folder)
    cmake_path(GET td STEM stem)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${include_dir})
    string(REPLACE "/" "-" name ${folder}-${stem})
    if(NOT folder STREQUAL last_folder)
      file(CONFIGURE OUTPUT ${parts_dir}/${name}.title.md CONTENT "\n## ${folder}\n\n")
      list(APPEND parts ${parts_dir}/${name}.title.md)
      set(last_folder ${folder})
    endif()
    neuroshard_tablegen_doc(${parts_dir}/${name}.md ${td} -gen-pass-doc)
    list(APPEND parts ${parts_dir}/${name}.md)
  endforeach()
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E cat ${parts} > ${output}
    DEPENDS ${parts}
    COMMENT "Generating docs/reference/${page}")
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
