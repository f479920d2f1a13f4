// Kernels for tests of the schedule language, without algorithms behind them.
#pragma once

#include "dsl/schedule/loop_nest.h"

namespace tilewright::tests {

/// softmax of x [r: 8192, c: 4096]: mask -> row_max -> exp -> row_sum -> divide.
KernelAxes softmax_axes();
/// gelu(x [m: 512, k: 256] times w [k: 256, n: 1024]): dot -> gelu.
KernelAxes linear_axes();
/// The first 50 of each sorted row of x [r: 64, c: 4096].
KernelAxes sort_axes();
/// As softmax_axes(), with a symbolic number of columns.
KernelAxes dynamic_softmax_axes();

}  // namespace tilewright::tests
