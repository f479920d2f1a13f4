// The options that the command, the library and Python share.
#pragma once

#include "lowering/options.h"
