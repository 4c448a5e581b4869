# Finds what the Python module is built with: the interpreter with its headers (Debian's
# python3-dev) and nanobind, a package of that interpreter (tools/dev/requirements).

set(NEUROSHARD_BUILD_PYTHON AUTO CACHE STRING
  "Build the compiled half of the Python package: ON, OFF, or AUTO (when nanobind is found)")
set_property(CACHE NEUROSHARD_BUILD_PYTHON PROPERTY STRINGS AUTO ON OFF)
set(NEUROSHARD_PYTHON_DIR "" CACHE STRING
  "Where the Python package is installed, below the prefix; default: lib/python3.X/site-packages")

option(NEUROSHARD_WHEEL
  "Build a wheel: PyTorch and CUDA are those of the interpreter, not of build/venv" OFF)

# The package as a program sees it with build/.../python on PYTHONPATH: links to its sources,
# and beside them what is built.
set(NEUROSHARD_PYTHON_PACKAGE ${PROJECT_BINARY_DIR}/python/neuroshard)

# Sets NEUROSHARD_PYTHON to whether the module is built.
macro(neuroshard_find_python)
  set(NEUROSHARD_PYTHON FALSE)
  if(NEUROSHARD_BUILD_PYTHON STREQUAL "OFF" OR NOT NEUROSHARD_BUILD_PYTHON)
    message(STATUS "Python module: not built (NEUROSHARD_BUILD_PYTHON is OFF)")
  elseif(NEUROSHARD_SANITIZE)
    message(STATUS "Python module: not built, since a plain interpreter cannot load sanitizers")
  else()
    neuroshard_locate_nanobind()
    if(NOT python_missing)
      message(STATUS "Python module: built for ${Python_EXECUTABLE} (${Python_VERSION})")
      find_package(nanobind REQUIRED CONFIG PATHS ${nanobind_dir} NO_DEFAULT_PATH)
      set(NEUROSHARD_PYTHON TRUE)
    elseif(NEUROSHARD_BUILD_PYTHON STREQUAL "AUTO")
      message(STATUS "Python module: not built, ${python_missing}")
    else()
      message(FATAL_ERROR "NEUROSHARD_BUILD_PYTHON is ON, but ${python_missing}")
    endif()
  endif()
endmacro()

# Sets python_missing to what is not there, else nanobind_dir. The interpreter is that of
# build/venv, unless the caller names one (Python_EXECUTABLE or Python_ROOT_DIR).
macro(neuroshard_locate_nanobind)
  set(python_missing "")
  set(venv ${PROJECT_SOURCE_DIR}/build/venv)
  if(NOT Python_EXECUTABLE AND NOT Python_ROOT_DIR AND EXISTS ${venv}/bin/python)
    set(Python_EXECUTABLE ${venv}/bin/python)
  endif()
  # Configures again once ./dev has installed packages there.
  file(GLOB packages ${venv}/lib/python3.*/site-packages)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${packages})
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  if(NOT Python_Interpreter_FOUND)
    set(python_missing "no Python 3.10 or later was found")
  elseif(NOT Python_Development.Module_FOUND)
    set(python_missing
      "the headers for ${Python_EXECUTABLE} were not found (Debian's python3-dev)")
  else()
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
      OUTPUT_VARIABLE nanobind_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
      RESULT_VARIABLE nanobind_result)
    if(NOT nanobind_result EQUAL 0)
      set(python_missing "${Python_EXECUTABLE} has no package nanobind (./dev installs it)")
    endif()
  endif()
endmacro()

# neuroshard_add_python_module(NAME SOURCES... LINK targets...)
# A compiled module of the package, and its type stub. Its symbols stay its own, so that
# another library in the process may hold the same code.
function(neuroshard_add_python_module name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  nanobind_add_module(${name} NB_STATIC NB_SUPPRESS_WARNINGS ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} neuroshard_options)
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${NEUROSHARD_PYTHON_PACKAGE} INSTALL_RPATH "")
  nanobind_add_stub(${name}_stub
    MODULE neuroshard.${name}
    OUTPUT ${NEUROSHARD_PYTHON_PACKAGE}/${name}.pyi
    PYTHON_PATH ${PROJECT_BINARY_DIR}/python
    DEPENDS ${name})
  add_dependencies(neuroshard-tools ${name} ${name}_stub)
  add_dependencies(neuroshard-demo ${name} ${name}_stub)
  neuroshard_python_install_dir(folder)
  install(TARGETS ${name} DESTINATION ${folder}/neuroshard COMPONENT python)
  install(FILES ${NEUROSHARD_PYTHON_PACKAGE}/${name}.pyi DESTINATION ${folder}/neuroshard
    COMPONENT python)
endfunction()

# Sets `result` to the folder of a package that the interpreter would import, "" if it has none.
function(neuroshard_python_package name result)
  execute_process(COMMAND ${Python_EXECUTABLE} -c
    "import importlib.util as u; print(u.find_spec('${name}').submodule_search_locations[0])"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

function(neuroshard_python_install_dir result)
  set(folder ${NEUROSHARD_PYTHON_DIR})
  if(NOT folder)
    set(folder lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages)
  endif()
  set(${result} ${folder} PARENT_SCOPE)
endfunction()

# Lays out the package in the build tree, and installs its sources and the shipped models
# where the module looks for them.
function(neuroshard_lay_out_python)
  set(sources ${PROJECT_SOURCE_DIR}/python/neuroshard)
  file(MAKE_DIRECTORY ${NEUROSHARD_PYTHON_PACKAGE})
  file(GLOB links ${NEUROSHARD_PYTHON_PACKAGE}/*)
  foreach(link IN LISTS links)
    if(IS_SYMLINK ${link} AND NOT EXISTS ${link}) # its source has gone
      file(REMOVE ${link})
    endif()
  endforeach()
  file(GLOB entries CONFIGURE_DEPENDS ${sources}/*)
  list(FILTER entries EXCLUDE REGEX "__pycache__")
  foreach(entry IN LISTS entries)
    cmake_path(GET entry FILENAME name)
    file(CREATE_LINK ${entry} ${NEUROSHARD_PYTHON_PACKAGE}/${name} SYMBOLIC)
  endforeach()
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/models ${NEUROSHARD_PYTHON_PACKAGE}/models SYMBOLIC)
  # The words of reports.
  set(glossary ${PROJECT_SOURCE_DIR}/docs/glossary.md)
  file(CREATE_LINK ${glossary} ${NEUROSHARD_PYTHON_PACKAGE}/glossary.md SYMBOLIC)
  if(NEUROSHARD_PYTHON)
    neuroshard_python_install_dir(folder)
    install(DIRECTORY ${sources} DESTINATION ${folder} COMPONENT python
      FILES_MATCHING PATTERN "*.py" PATTERN "*.html" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
    install(FILES ${glossary} DESTINATION ${folder}/neuroshard COMPONENT python)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${folder}/neuroshard
      COMPONENT python FILES_MATCHING PATTERN "*.safetensors" PATTERN "data" EXCLUDE)
  endif()
endfunction()

# What goes into the package of a wheel, besides the module: libraries into neuroshard/lib, the
# compiler's tools into neuroshard/bin, as far as this build has them. neuroshard._native.binaries
# finds them there. Other installations have them in lib and bin of the prefix.
function(neuroshard_fill_wheel)
  add_custom_target(neuroshard-wheel)
  if(NOT NEUROSHARD_PYTHON)
    return()
  endif()
  neuroshard_python_install_dir(folder)
  add_dependencies(neuroshard-wheel _planner _planner_stub)
  set(libraries NeuroShardRuntimeCuda NeuroShardCudaSort NeuroShardRuntimeTorch)
  set(tools neuroshard-compile neuroshard-lsp-server neuroshard-opt neuroshard-reduce neuroshard-run
    neuroshard-translate)
  if(TARGET NeuroShardRuntimeTorch OR TARGET neuroshard-run)
    list(APPEND libraries NeuroShardRuntime)
  endif()
  foreach(target IN LISTS libraries tools)
    if(TARGET ${target})
      add_dependencies(neuroshard-wheel ${target})
      install(TARGETS ${target} COMPONENT python_parts EXCLUDE_FROM_ALL
        LIBRARY DESTINATION ${folder}/neuroshard/lib COMPONENT python_parts EXCLUDE_FROM_ALL
        RUNTIME DESTINATION ${folder}/neuroshard/bin COMPONENT python_parts EXCLUDE_FROM_ALL)
    endif()
    if(TARGET ${target} AND target IN_LIST tools AND SKBUILD_SCRIPTS_DIR)
      # What pip puts into the bin of the environment.
      set(script ${PROJECT_BINARY_DIR}/scripts/${target})
      file(CONFIGURE OUTPUT ${script} CONTENT
        "#!python\nfrom neuroshard._native.binaries import run_tool\n\nrun_tool('${target}')\n")
      install(PROGRAMS ${script} DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python_parts
        EXCLUDE_FROM_ALL)
    endif()
  endforeach()
endfunction()
