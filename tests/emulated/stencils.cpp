// Windows, stencils and transposes on the host emulation: what neighbours share is read once, whichever way the tensors lie.
#include <doctest/doctest.h>

#include "tests/support/emulated_kernel.h"

using namespace tilewright::tests;

namespace {

std::string convolution(const std::string &x, const std::string &w, const std::string &y, const std::string &attributes) {
    return "%x : " + x + " = placeholder\n%w : " + w + " = placeholder\n%b : float32[" + w.substr(w.find('[') + 1, w.find(',') - w.find('[') - 1) + "] = placeholder\n%y : " + y +
           " = call_function aten.convolution.default(input=%x, weight=%w, bias=%b, " + attributes + ")\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("depthwise windows: each place of a line is loaded once, channels last and first, padded, strided, dilated, with tails") {
    CHECK(check_emulated(convolution("float32[2, 6, 9, 17] strides=[918, 1, 102, 6]", "float32[6, 1, 5, 5]", "float32[2, 6, 9, 17] strides=[918, 1, 102, 6]",
                                     "stride=[1, 1], padding=[2, 2], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=6").c_str()) == "");
    CHECK(check_emulated(convolution("float32[1, 4, 12, 19]", "float32[4, 1, 3, 3]", "float32[1, 4, 6, 10]",
                                     "stride=[2, 2], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=4").c_str()) == "");
    CHECK(check_emulated(convolution("float32[1, 4, 12, 19]", "float32[4, 1, 3, 3]", "float32[1, 4, 8, 15]",
                                     "stride=[1, 1], padding=[0, 0], dilation=[2, 2], transposed=false, output_padding=[0, 0], groups=4").c_str()) == "");
}
