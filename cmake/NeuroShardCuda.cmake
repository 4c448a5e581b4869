# Finds NVIDIA's compiler, and builds with it the one library that is CUDA C++: the sort.
#
# CUDA is not enabled as a language: that would look for a GPU and a system toolkit, and a
# machine that builds NeuroShard has just the wheels of tools/dev/requirements in build/venv.

set(NEUROSHARD_BUILD_CUDA_SORT AUTO CACHE STRING
  "Build libneuroshard_cuda_sort.so, which needs nvcc: ON, OFF, or AUTO (when nvcc is found)")
set_property(CACHE NEUROSHARD_BUILD_CUDA_SORT PROPERTY STRINGS AUTO ON OFF)
set(NEUROSHARD_CUDA_DIR "" CACHE PATH
  "Folder of a CUDA 12 or 13 toolkit (with bin/nvcc); default: the wheels in build/venv")
set(NEUROSHARD_CUDA_ARCHITECTURES 80 90 CACHE STRING
  "Compute capabilities to make machine code for; PTX of the highest serves newer GPUs")

# Sets NEUROSHARD_CUDA_ROOT to the toolkit, if there is one, whose ptxas compiled programs take,
# and NEUROSHARD_CUDA_SORT to whether the library is built.
macro(neuroshard_find_cuda)
  set(NEUROSHARD_CUDA_SORT FALSE)
  neuroshard_locate_cuda()
  if(NEUROSHARD_BUILD_CUDA_SORT STREQUAL "OFF" OR NOT NEUROSHARD_BUILD_CUDA_SORT)
    message(STATUS "CUDA sort: not built (NEUROSHARD_BUILD_CUDA_SORT is OFF)")
  elseif(NEUROSHARD_SANITIZE)
    message(STATUS "CUDA sort: not built, since it runs on GPUs alone, without sanitizers")
  elseif(NOT cuda_missing)
    message(STATUS "CUDA sort: built with ${NEUROSHARD_CUDA_ROOT}/bin/nvcc")
    set(NEUROSHARD_CUDA_SORT TRUE)
  elseif(NEUROSHARD_BUILD_CUDA_SORT STREQUAL "AUTO")
    message(STATUS "CUDA sort: not built, ${cuda_missing}")
  else()
    message(FATAL_ERROR "NEUROSHARD_BUILD_CUDA_SORT is ON, but ${cuda_missing}")
  endif()
endmacro()

# Sets cuda_missing to what is not there, else NEUROSHARD_CUDA_ROOT and
# NEUROSHARD_CUDART_STATIC.
macro(neuroshard_locate_cuda)
  set(cuda_missing "")
  set(cuda_folders ${NEUROSHARD_CUDA_DIR})
  if(NEUROSHARD_WHEEL AND NOT NEUROSHARD_CUDA_DIR)
    neuroshard_python_package(nvidia.cu13 cuda_folders)
  elseif(NOT NEUROSHARD_CUDA_DIR)
    file(GLOB packages ${PROJECT_SOURCE_DIR}/build/venv/lib/python3.*/site-packages)
    # Configures again once ./dev has installed packages there.
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${packages})
    list(TRANSFORM packages APPEND /nvidia/cu13 OUTPUT_VARIABLE cuda_folders)
  endif()
  foreach(folder IN LISTS cuda_folders)
    if(EXISTS ${folder}/bin/nvcc)
      set(NEUROSHARD_CUDA_ROOT ${folder})
      find_library(NEUROSHARD_CUDART_STATIC libcudart_static.a NO_CACHE NO_DEFAULT_PATH
        PATHS ${folder} PATH_SUFFIXES lib lib64)
      break()
    endif()
  endforeach()
  if(NOT NEUROSHARD_CUDART_STATIC)
    set(cuda_missing "there is no bin/nvcc with libcudart_static.a in ")
    string(APPEND cuda_missing "NEUROSHARD_CUDA_DIR ('${NEUROSHARD_CUDA_DIR}') nor in build/venv "
      "(./dev installs it)")
  endif()
endmacro()

# neuroshard_add_cuda_library(NAME SOURCE.cu)
# A shared library of one CUDA C++ file. It exports what the file marks as visible, and
# needs no CUDA library to load.
function(neuroshard_add_cuda_library name source)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  set(code "")
  foreach(architecture IN LISTS NEUROSHARD_CUDA_ARCHITECTURES)
    list(APPEND code -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(SORT NEUROSHARD_CUDA_ARCHITECTURES COMPARE NATURAL)
  list(GET NEUROSHARD_CUDA_ARCHITECTURES -1 newest)
  list(APPEND code -gencode arch=compute_${newest},code=compute_${newest})
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${NEUROSHARD_CUDA_ROOT}/bin/nvcc -c -O3 -std=c++20
      ${code} -Werror=all-warnings
      -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra
      ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${source} ${NEUROSHARD_CUDA_ROOT}/bin/nvcc
    COMMENT "Building CUDA object ${source}"
    VERBATIM)
  add_library(${name} SHARED ${object})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX INSTALL_RPATH "")
  target_link_libraries(${name} PRIVATE
    ${NEUROSHARD_CUDART_STATIC} Threads::Threads ${CMAKE_DL_LIBS} rt)
  target_link_options(${name} PRIVATE LINKER:--exclude-libs=ALL)
  add_dependencies(neuroshard-tools ${name})
endfunction()
