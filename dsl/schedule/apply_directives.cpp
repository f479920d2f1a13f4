#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "dsl/closest_word.h"
#include "dsl/error.h"
#include "dsl/schedule/check_arguments.h"
#include "dsl/schedule/directive_errors.h"
#include "dsl/schedule/directive_table.h"
#include "dsl/schedule/legality.h"
#include "dsl/schedule/lexer.h"
#include "dsl/schedule/loop_edits.h"
#include "dsl/schedule/loop_nest.h"

namespace tilewright {

namespace {

class Interpreter {
public:
    Interpreter(const KernelAxes &kernel, ScheduleTarget target) : kernel_(kernel), target_(target) {
        result_.kernel = kernel.kernel;
        for (const StageAxes &stage : kernel.stages) {
            if (!stage.is_input) {
                result_.stages.push_back(scheduled(stage, stage.name));
            }
        }
    }

    ScheduledKernel run(const Directives &directives) {
        for (const Directive &directive : directives) {
            apply(directive);
        }
        check_legal(kernel_, result_, target_);
        return std::move(result_);
    }

private:
    // ---- Stages ----
    static ScheduledStage scheduled(const StageAxes &stage, const std::string &name) {
        ScheduledStage result;
        result.name = name;
        for (const NamedAxis &axis : stage.axes) {
            add_root(result, axis.name, axis.extent, false);
        }
        for (const NamedAxis &axis : stage.reduction_axes) {
            add_root(result, axis.name, axis.extent, true);
        }
        return result;
    }

    int stage_index(const std::string &name) const {
        for (std::size_t i = 0; i < result_.stages.size(); ++i) {
            if (result_.stages[i].name == name) {
                return static_cast<int>(i);
            }
        }
        return -1;
    }

    std::string stage_repair(const std::string &name) const {
        std::vector<std::string> names;
        for (const ScheduledStage &stage : result_.stages) {
            names.push_back(stage.name);
        }
        const std::string near = closest(name, names);
        if (!near.empty()) {
            return fmt::format("did you mean {}?", near);
        }
        names.resize(std::min<std::size_t>(names.size(), 12));
        return fmt::format("its stages are {}", fmt::join(names, " "));
    }

    /// The stage that a directive edits; makes a staged copy at its first mention.
    ScheduledStage &edited_stage(const Directive &directive) {
        int index = stage_index(directive.stage);
        if (index < 0) {
            index = make_staged_copy(directive);
        }
        if (index < 0) {
            const StageAxes *tensor = kernel_.find(directive.stage);
            if (tensor && tensor->is_input) {
                directive_error(directive, fmt::format("'{}' is a tensor in memory; it has no loops", directive.stage),
                                fmt::format("schedule the copy that a stage reads: {}.in(STAGE)", directive.stage));
            }
            directive_error(directive, fmt::format("kernel '{}' has no stage '{}'", kernel_.kernel, directive.stage),
                            stage_repair(directive.stage));
        }
        ScheduledStage &stage = result_.stages[index];
        if (!stage.is_edited) {
            stage.at_location = directive.location;
        }
        stage.is_edited = true;
        return stage;
    }

    /// Whether the stage reads the tensor, itself or by way of other stages.
    bool reads_through(const StageAxes &stage, const std::string &source) const {
        std::vector<const StageAxes *> pending{&stage};
        std::set<std::string> seen;
        while (!pending.empty()) {
            const StageAxes &at = *pending.back();
            pending.pop_back();
            for (const std::string &read : at.reads) {
                const StageAxes *producer = seen.insert(read).second ? kernel_.find(read) : nullptr;
                if (read == source) {
                    return true;
                }
                if (producer) {
                    pending.push_back(producer);
                }
            }
        }
        return false;
    }

    int make_staged_copy(const Directive &directive) {
        const std::size_t in = directive.stage.find(".in(");
        if (in == std::string::npos || directive.stage.back() != ')') {
            return -1;
        }
        const std::string source = directive.stage.substr(0, in);
        const std::string reader = directive.stage.substr(in + 4, directive.stage.size() - in - 5);
        const StageAxes *tensor = kernel_.find(source);
        const StageAxes *stage = kernel_.find(reader);
        if (!tensor) {
            directive_error(directive, fmt::format("kernel '{}' has no tensor or stage '{}'", kernel_.kernel, source),
                            stage_repair(source));
        }
        if (!stage || stage->is_input) {
            directive_error(directive, fmt::format("kernel '{}' has no stage '{}'", kernel_.kernel, reader), stage_repair(reader));
        }
        if (!reads_through(*stage, source)) {
            directive_error(directive, fmt::format("stage '{}' does not read '{}'", reader, source),
                            fmt::format("it reads {}", fmt::join(stage->reads, " ")));
        }
        ScheduledStage copy;
        copy.name = directive.stage;
        copy.copy_of = source;
        copy.copy_for = reader;
        for (const NamedAxis &axis : tensor->axes) {
            add_root(copy, axis.name, axis.extent, false);
        }
        const int index = stage_index(reader);
        result_.stages.insert(result_.stages.begin() + index, std::move(copy));
        return index;
    }

    // ---- Directives ----
    void apply(const Directive &directive) {
        const DirectiveSpec *spec = find_directive(directive.name);
        if (!spec) {
            directive_error(directive, fmt::format("there is no directive '{}'", directive.name),
                            "'tilewright help directives' lists them all");
        }
        ScheduledStage &stage = edited_stage(directive);
        check_arguments(directive, *spec);
        check_target(directive, *spec, target_);
        if (!spec->repeats && !given_.insert(directive.stage + "." + directive.name).second) {
            directive_error(directive, fmt::format("{} is given twice for stage '{}'", directive.name, directive.stage),
                            "remove one of them");
        }
        const std::string &name = directive.name;
        if (name == "split") {
            split_loop(stage, directive);
        } else if (name == "fuse") {
            fuse_loops(stage, directive);
        } else if (name == "reorder") {
            reorder_loops(stage, directive);
        } else if (name == "tile") {
            tile_loops(stage, directive);
        } else if (name == "compute_at") {
            set_compute(stage, directive, ComputeLevel::at);
        } else if (name == "compute_root") {
            set_compute(stage, directive, ComputeLevel::root);
        } else if (name == "compute_inline") {
            set_compute(stage, directive, ComputeLevel::inlined);
        } else if (name == "store_in") {
            const std::string &memory = word(directive, 0);
            stage.store_in = memory == "register" ? MemorySpace::register_file
                             : memory == "shared" ? MemorySpace::shared
                                                  : MemorySpace::global;
        } else if (name == "rfactor") {
            rfactor(directive);
        } else if (const auto binding = binding_of(name)) {
            bind_loops(stage, directive, *binding);
        } else {
            flag(stage, directive, *spec);
        }
    }

    static std::optional<Binding> binding_of(const std::string &directive) {
        static const std::map<std::string, Binding> bindings{{"unroll", Binding::unrolled},    {"vectorize", Binding::vectorized},
                                                             {"parallel", Binding::parallel},  {"gpu_blocks", Binding::block},
                                                             {"gpu_threads", Binding::thread}, {"gpu_lanes", Binding::lane}};
        const auto found = bindings.find(directive);
        return found == bindings.end() ? std::nullopt : std::optional(found->second);
    }

    void set_compute(ScheduledStage &stage, const Directive &directive, ComputeLevel level) {
        if (stage.compute != ComputeLevel::unspecified) {
            directive_error(directive, fmt::format("stage '{}' has a place already", stage.name),
                            "keep one of compute_at, compute_root and compute_inline");
        }
        stage.compute = level;
        stage.at_location = directive.location;
        if (level == ComputeLevel::at) {
            stage.at_stage = word(directive, 0);
            stage.at_axis = word(directive, 1);
        }
    }

    void rfactor(const Directive &directive) {
        const int index = stage_index(directive.stage);
        const int kept = find_loop(result_.stages[index], directive, 0);
        must_be_serial(result_.stages[index], kept, directive, 0);
        require_reduction(result_.stages[index], kept, directive);
        if (!is_identifier(word(directive, 1))) {
            argument_error(directive, 1, fmt::format("'{}' is no name for an axis", word(directive, 1)),
                           "use letters, digits and '_', a letter first");
        }
        ScheduledStage partial;
        partial.name = directive.stage + "_partial";
        partial.partial_of = directive.stage;
        partial.at_location = directive.location;
        if (stage_index(partial.name) >= 0 || kernel_.find(partial.name)) {
            directive_error(directive, fmt::format("kernel '{}' has a stage '{}' already", kernel_.kernel, partial.name),
                            "remove this rfactor");
        }
        ScheduledStage &stage = result_.stages[index];
        for (const LoopAxis &axis : stage.axes) {
            if (axis.origin == LoopAxis::Origin::root && !axis.reduction) {
                add_root(partial, axis.name, axis.extent, false);
            }
        }
        if (partial.find_axis(word(directive, 1)) >= 0) {
            argument_error(directive, 1, fmt::format("stage '{}' has an axis '{}' already", stage.name, word(directive, 1)),
                           "choose another name");
        }
        add_root(partial, word(directive, 1), stage.axes[kept].extent, false);
        move_reductions(stage, partial, kept);
        result_.stages.insert(result_.stages.begin() + index, std::move(partial));
        result_.stages[index + 1].flags.push_back({directive});
    }

    /// The reduction loops other than `kept` leave the stage for its partial one.
    static void move_reductions(ScheduledStage &stage, ScheduledStage &partial, int kept) {
        std::vector<int> remaining;
        for (int index : stage.loop_order) {
            LoopAxis &axis = stage.axes[index];
            if (!axis.reduction || index == kept) {
                remaining.push_back(index);
                continue;
            }
            add_root(partial, axis.name, axis.extent, true);
            axis.is_loop = false;
        }
        stage.loop_order = std::move(remaining);
    }

    void flag(ScheduledStage &stage, const Directive &directive, const DirectiveSpec &spec) {
        for (std::size_t i = 0; i < directive.arguments.size(); ++i) {
            const ArgumentKind kind = spec.arguments[std::min(i, spec.arguments.size() - 1)].kind;
            if (kind == ArgumentKind::axis || kind == ArgumentKind::reduction_axis) {
                const int index = find_loop(stage, directive, i);
                if (kind == ArgumentKind::reduction_axis) {
                    require_reduction(stage, index, directive);
                }
            } else if (kind == ArgumentKind::stage && !kernel_.find(word(directive, i))) {
                argument_error(directive, i, fmt::format("kernel '{}' has no stage '{}'", kernel_.kernel, word(directive, i)),
                               stage_repair(word(directive, i)));
            }
        }
        stage.flags.push_back({directive});
    }

    const KernelAxes &kernel_;
    ScheduleTarget target_;
    ScheduledKernel result_;
    std::set<std::string> given_;
};

}  // namespace

ScheduledKernel apply_directives(const KernelAxes &kernel, const Directives &directives, ScheduleTarget target) {
    return Interpreter(kernel, target).run(directives);
}

}  // namespace tilewright
