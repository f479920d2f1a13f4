# Everything that Tilewright builds upon. bootstrap.sh installs it on Debian 12.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # a project that has this one in a subfolder links with them too
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

file(GLOB TILEWRIGHT_SITE LIST_DIRECTORIES true ${TILEWRIGHT_VENV}/lib/python3*/site-packages)
list(APPEND CMAKE_PREFIX_PATH ${TILEWRIGHT_SITE}/halide)
set_property(GLOBAL PROPERTY FIND_LIBRARY_USE_LIB64_PATHS TRUE)  # where the wheel keeps its packages, and Debian does not look
find_package(Halide 21 REQUIRED COMPONENTS Halide)

if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW)  # Boost's own package files
endif()
find_package(Boost 1.81 REQUIRED COMPONENTS json context program_options)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(SQLite3 REQUIRED)
if(NOT TARGET SQLite3::SQLite3)  # the name since CMake 4.3
  add_library(SQLite3::SQLite3 ALIAS SQLite::SQLite3)
endif()
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET GLOBAL libzip)

# CUDA: the toolkit where there is one, else the wheels in the Python environment. Only headers are needed to build: the driver, NVRTC,
# cuBLASLt and cuDNN are opened at run time, so one binary serves machines with and without them.
find_path(TILEWRIGHT_CUDA_INCLUDE cuda.h
  HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include ${TILEWRIGHT_SITE}/nvidia/cu13/include REQUIRED)
find_path(TILEWRIGHT_CUDNN_INCLUDE cudnn.h HINTS ${TILEWRIGHT_CUDA_INCLUDE} /usr/include ${TILEWRIGHT_SITE}/nvidia/cudnn/include)
find_path(TILEWRIGHT_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${TILEWRIGHT_SITE}/include /usr/include)
# Its linker loads compiled CPU kernels. Linked statically: a few parts of LLVM are 2 MB, its shared library is 110 MB and slow to load.
find_package(LLVM 14 REQUIRED CONFIG HINTS /usr/lib/llvm-14)
add_library(tilewright_llvm INTERFACE)
target_include_directories(tilewright_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
llvm_map_components_to_libnames(TILEWRIGHT_LLVM_LIBRARIES orcjit)
target_link_libraries(tilewright_llvm INTERFACE ${TILEWRIGHT_LLVM_LIBRARIES} -Wl,--gc-sections -Wl,--as-needed)

set(TILEWRIGHT_RUNTIME_LIBRARIES ${CMAKE_DL_LIBS} Threads::Threads tilewright_llvm)
set(TILEWRIGHT_CUDA_LIBRARIES ${CMAKE_DL_LIBS} Boost::context)
