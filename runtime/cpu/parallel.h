// How parallel loops of compiled CPU kernels run: on Halide's thread pool, alone where one task is all there is.
#pragma once

namespace tilewright {

/// Tells Halide's runtime, once it is loaded. `set_custom_do_par_for` is its function of that name.
void use_direct_single_tasks(void *set_custom_do_par_for);

}  // namespace tilewright
