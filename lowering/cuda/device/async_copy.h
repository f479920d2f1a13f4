// Copies from global to shared memory that run beside the computation: cp.async, mbarriers and the bulk tensor copy.
#pragma once

#include "types.h"
