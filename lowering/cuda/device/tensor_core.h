// Matrix multiply-accumulate on tensor cores: mma.sync, wgmma and the loads that feed them.
#pragma once

#include "types.h"
