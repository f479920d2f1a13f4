// What directives about the shape of the nest do to one stage's loops.
#pragma once

#include <string>

#include "dsl/schedule/loop_nest.h"

namespace tilewright {

/// A new innermost loop over an axis of the stage itself.
void add_root(ScheduledStage &stage, const std::string &name, const Extent &extent, bool reduction);

/// Index of the loop that an argument names, which still stands; UserError where it does not.
int find_loop(const ScheduledStage &stage, const Directive &directive, std::size_t argument);
void must_be_serial(const ScheduledStage &stage, int index, const Directive &directive, std::size_t argument);
void require_reduction(const ScheduledStage &stage, int index, const Directive &directive);

void split_loop(ScheduledStage &stage, const Directive &directive);
void fuse_loops(ScheduledStage &stage, const Directive &directive);
void reorder_loops(ScheduledStage &stage, const Directive &directive);
void tile_loops(ScheduledStage &stage, const Directive &directive);
void bind_loops(ScheduledStage &stage, const Directive &directive, Binding binding);

}  // namespace tilewright
