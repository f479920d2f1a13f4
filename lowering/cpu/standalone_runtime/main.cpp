// Build step: writes the part of Halide that compiled kernels call (memory, threads, errors) as one object file, so that running kernels
// needs no libHalide.
#include <Halide.h>
#include <cstdio>

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s OBJECT\n", argv[0]);
        return 2;
    }
    const Halide::Target host = Halide::get_host_target();
    Halide::compile_standalone_runtime(std::string(argv[1]), Halide::Target(host.os, host.arch, host.bits));
    return 0;
}
