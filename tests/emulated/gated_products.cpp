// Products whose pieces meet in one kernel, as CUDA on the host emulation against the CPU target.
#include <doctest/doctest.h>

#include "tests/support/emulated_kernel.h"

using namespace tilewright::tests;

TEST_CASE("the gates of a recurrent cell and their product are one kernel") {
    const char *cell = R"(%x : float32[3, 20] = placeholder
%h : float32[3, 16] = placeholder
%c : float32[3, 16] = placeholder
%wi : float32[64, 20] = placeholder
%wh : float32[64, 16] = placeholder
%bi : float32[64] = placeholder
%bh : float32[64] = placeholder
%y : (float32[3, 16], float32[3, 16]) = call_function aten.lstm_cell.default(input=%x, hx=[%h, %c], w_ih=%wi, w_hh=%wh, b_ih=%bi, b_hh=%bh)
%y0 : float32[3, 16] = call_function getitem(tuple=%y, index=0)
%y1 : float32[3, 16] = call_function getitem(tuple=%y, index=1)
%output = output(values=[%y0, %y1]))";
    CHECK(kernels_from(cell).size() == 2);
    CHECK(check_emulated(cell) == "");
}

TEST_CASE("halves of a product of 16-bit numbers, small and for the matrix unit") {
    const char *small = R"(%x : bfloat16[5, 24] = placeholder
%w : bfloat16[80, 24] = placeholder
%g : bfloat16[5, 80] = call_function aten.linear.default(input=%x, weight=%w)
%y : bfloat16[5, 40] = call_function aten.glu.default(self=%g, dim=-1)
%output = output(values=[%y]))";
    CHECK(kernels_from(small).size() == 1);
    CHECK(check_emulated(small, {}, 1e-2) == "");
    const char *large = R"(%x : bfloat16[1, 192, 128] = placeholder
%w : bfloat16[512, 128] = placeholder
%g : bfloat16[1, 192, 512] = call_function aten.linear.default(input=%x, weight=%w)
%y : bfloat16[1, 192, 256] = call_function aten.glu.default(self=%g, dim=-1)
%output = output(values=[%y]))";
    CHECK(kernels_from(large).size() == 1);
    CHECK(check_emulated(large, {}, 1e-2) == "");
}
