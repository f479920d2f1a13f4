#include "runtime/cpu/parallel.h"

#include <HalideRuntime.h>

namespace tilewright {
namespace {

halide_do_par_for_t pool = nullptr;

/// The pool locks a queue and wakes its threads for every loop: more than a small kernel takes.
int run_tasks(void *context, halide_task_t task, int min, int size, std::uint8_t *closure) {
    if (size == 1) {
        return task(context, min, closure);
    }
    return pool(context, task, min, size, closure);
}

}  // namespace

void use_direct_single_tasks(void *set_custom_do_par_for) {
    pool = reinterpret_cast<halide_do_par_for_t (*)(halide_do_par_for_t)>(set_custom_do_par_for)(run_tasks);
}

}  // namespace tilewright
