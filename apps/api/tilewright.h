// The public library: load a model with its schedule and run it from several threads; write, schedule and call kernels of one's own;
// teach the compiler operators. Mistakes are UserError, bugs are InternalError (dsl/error.h).
#pragma once

#include "apps/api/kernel.h"
#include "apps/api/model.h"
#include "apps/api/options.h"
#include "dsl/algorithm/math.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "dsl/schedule/builder.h"
#include "lowering/decompose/builder.h"
#include "lowering/decompose/decompose.h"
#include "lowering/translate/context.h"
#include "lowering/translate/translate.h"
