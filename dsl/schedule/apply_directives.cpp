#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "dsl/error.h"
#include "dsl/schedule/directive_table.h"
#include "dsl/schedule/legality.h"
#include "dsl/schedule/lexer.h"
#include "dsl/schedule/loop_nest.h"

namespace tilewright {

namespace {

constexpr std::int64_t largest_count = 1 << 30;
constexpr std::size_t largest_nest = 256;  // axes of one stage: more is a runaway list, not a schedule

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
    // ---- Errors ----
    [[noreturn]] static void fail(const Directive &directive, const std::string &cause, const std::string &repair) {
        schedule_error(directive.location, directive.to_string(), cause, repair);
    }
    [[noreturn]] static void fail_at(const Directive &directive, std::size_t argument, const std::string &cause,
                                     const std::string &repair) {
        SourceLocation place = directive.location;
        if (argument < directive.columns.size()) {
            place.column = directive.columns[argument];
        }
        schedule_error(place, directive.to_string(), cause, repair);
    }

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

    static void add_root(ScheduledStage &stage, const std::string &name, const Extent &extent, bool reduction) {
        LoopAxis axis;
        axis.name = name;
        axis.extent = extent;
        axis.reduction = reduction;
        stage.loop_order.push_back(static_cast<int>(stage.axes.size()));
        stage.axes.push_back(std::move(axis));
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
                fail(directive, fmt::format("'{}' is a tensor in memory; it has no loops", directive.stage),
                     fmt::format("schedule the copy that a stage reads: {}.in(STAGE)", directive.stage));
            }
            fail(directive, fmt::format("kernel '{}' has no stage '{}'", kernel_.kernel, directive.stage), stage_repair(directive.stage));
        }
        ScheduledStage &stage = result_.stages[index];
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
            fail(directive, fmt::format("kernel '{}' has no tensor or stage '{}'", kernel_.kernel, source), stage_repair(source));
        }
        if (!stage || stage->is_input) {
            fail(directive, fmt::format("kernel '{}' has no stage '{}'", kernel_.kernel, reader), stage_repair(reader));
        }
        if (!reads_through(*stage, source)) {
            fail(directive, fmt::format("stage '{}' does not read '{}'", reader, source),
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

    // ---- Arguments ----
    void check_arguments(const Directive &directive, const DirectiveSpec &spec) const {
        const std::size_t wanted = spec.arguments.size();
        const bool repeated = wanted > 0 && spec.arguments.back().repeated;
        const std::size_t given = directive.arguments.size();
        if (repeated ? given < wanted : given != wanted) {
            fail(directive,
                 fmt::format("{} takes {}{} argument{}, not {}", spec.name, repeated ? "at least " : "", wanted, wanted == 1 ? "" : "s",
                             given),
                 fmt::format("write {}", signature(spec)));
        }
        for (std::size_t i = 0; i < given; ++i) {
            check_argument(directive, spec, i);
        }
    }

    static void check_argument(const Directive &directive, const DirectiveSpec &spec, std::size_t i) {
        const ArgumentSpec &wanted = spec.arguments[std::min(i, spec.arguments.size() - 1)];
        const auto *number = std::get_if<std::int64_t>(&directive.arguments[i]);
        if (wanted.kind == ArgumentKind::count) {
            if (!number) {
                fail_at(directive, i,
                        fmt::format("argument '{}' of {} is a number, not '{}'", wanted.name, spec.name,
                                    std::get<std::string>(directive.arguments[i])),
                        fmt::format("write {}", signature(spec)));
            }
            if (*number < 1 || *number > largest_count) {
                fail_at(directive, i, fmt::format("argument '{}' of {} is {}", wanted.name, spec.name, *number),
                        fmt::format("give a number from 1 to {}", largest_count));
            }
            return;
        }
        if (number) {
            fail_at(directive, i, fmt::format("argument '{}' of {} is a name, not the number {}", wanted.name, spec.name, *number),
                    fmt::format("write {}", signature(spec)));
        }
        const std::string &word = std::get<std::string>(directive.arguments[i]);
        if (wanted.kind == ArgumentKind::keyword) {
            const std::string padded = " " + std::string(wanted.keywords) + " ";
            if (word.empty() || padded.find(" " + word + " ") == std::string::npos) {
                fail_at(directive, i, fmt::format("'{}' is no {} of {}", word, wanted.name, spec.name),
                        fmt::format("use one of: {}", wanted.keywords));
            }
        } else if (wanted.kind == ArgumentKind::new_axis && !is_identifier(word)) {
            fail_at(directive, i, fmt::format("'{}' is no name for an axis", word), "use letters, digits and '_', a letter first");
        }
    }

    void check_target(const Directive &directive, const DirectiveSpec &spec) const {
        if (target_ == ScheduleTarget::any || spec.target == DirectiveTarget::both) {
            return;
        }
        if ((spec.target == DirectiveTarget::cpu) != (target_ == ScheduleTarget::cpu)) {
            fail(directive, fmt::format("{} means nothing on target {}", spec.name, target_ == ScheduleTarget::cpu ? "cpu" : "cuda"),
                 target_ == ScheduleTarget::cpu ? "use parallel, vectorize and unroll there, or tune for this target"
                                                : "use gpu_blocks and gpu_threads there, or tune for this target");
        }
    }

    // ---- Axes ----
    static const std::string &word(const Directive &directive, std::size_t argument) {
        return std::get<std::string>(directive.arguments[argument]);
    }
    static std::int64_t number(const Directive &directive, std::size_t argument) {
        return std::get<std::int64_t>(directive.arguments[argument]);
    }

    /// A loop of the stage that still stands.
    static int loop(const ScheduledStage &stage, const Directive &directive, std::size_t argument) {
        const std::string &name = word(directive, argument);
        const int index = stage.find_axis(name);
        if (index < 0) {
            fail_at(directive, argument, fmt::format("stage '{}' has no axis '{}'", stage.name, name),
                    fmt::format("its loops are {}", loop_names(stage)));
        }
        const LoopAxis &axis = stage.axes[index];
        if (axis.is_loop) {
            return index;
        }
        if (axis.children[1] >= 0) {
            fail_at(directive, argument, fmt::format("axis '{}' of stage '{}' was split already", name, stage.name),
                    fmt::format("name one of its parts, {} or {}", stage.axes[axis.children[0]].name, stage.axes[axis.children[1]].name));
        }
        if (axis.children[0] >= 0) {
            fail_at(directive, argument, fmt::format("axis '{}' of stage '{}' was fused already", name, stage.name),
                    fmt::format("name the fused loop {}", stage.axes[axis.children[0]].name));
        }
        fail_at(directive, argument, fmt::format("axis '{}' of stage '{}' went to '{}_partial' by rfactor", name, stage.name, stage.name),
                fmt::format("edit it there: {}_partial.{}(…)", stage.name, directive.name));
    }

    static std::string loop_names(const ScheduledStage &stage) {
        std::string names;
        for (int index : stage.loop_order) {
            names += (names.empty() ? "" : " ") + stage.axes[index].name;
        }
        return names.empty() ? "none" : names;
    }

    static int new_axis(ScheduledStage &stage, const Directive &directive, std::size_t argument, LoopAxis axis) {
        axis.name = word(directive, argument);
        if (stage.find_axis(axis.name) >= 0) {
            fail_at(directive, argument, fmt::format("stage '{}' has an axis '{}' already", stage.name, axis.name), "choose another name");
        }
        if (stage.axes.size() >= largest_nest) {
            fail(directive, fmt::format("stage '{}' has {} axes", stage.name, stage.axes.size()), "split fewer loops");
        }
        stage.axes.push_back(std::move(axis));
        return static_cast<int>(stage.axes.size()) - 1;
    }

    static void must_be_serial(const ScheduledStage &stage, int index, const Directive &directive, std::size_t argument) {
        const LoopAxis &axis = stage.axes[index];
        if (axis.binding != Binding::serial) {
            fail_at(directive, argument,
                    fmt::format("axis '{}' of stage '{}' is bound to {} already", axis.name, stage.name, name(axis.binding)),
                    "an axis is bound once; split it first, or remove one of the two");
        }
    }

    // ---- Directives ----
    void apply(const Directive &directive) {
        const DirectiveSpec *spec = find_directive(directive.name);
        if (!spec) {
            fail(directive, fmt::format("there is no directive '{}'", directive.name), "'tilewright help directives' lists them all");
        }
        ScheduledStage &stage = edited_stage(directive);
        check_arguments(directive, *spec);
        check_target(directive, *spec);
        if (!spec->repeats && !given_.insert(directive.stage + "." + directive.name).second) {
            fail(directive, fmt::format("{} is given twice for stage '{}'", directive.name, directive.stage), "remove one of them");
        }
        const std::string &name = directive.name;
        if (name == "split") {
            split(stage, loop(stage, directive, 0), directive, 0, 1, 2, number(directive, 3));
        } else if (name == "fuse") {
            fuse(stage, directive);
        } else if (name == "reorder") {
            reorder(stage, directive);
        } else if (name == "tile") {
            tile(stage, directive);
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
            bind(stage, directive, *binding);
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

    /// Returns the indices of both parts.
    std::pair<int, int> split(ScheduledStage &stage, int parent, const Directive &directive, std::size_t axis_argument,
                              std::size_t outer_argument, std::size_t inner_argument, std::int64_t factor) {
        must_be_serial(stage, parent, directive, axis_argument);
        LoopAxis part;
        part.reduction = stage.axes[parent].reduction;
        part.parent = parent;
        part.factor = factor;
        part.origin = LoopAxis::Origin::split_outer;
        part.extent = ceil_div(stage.axes[parent].extent, factor);
        const int outer = new_axis(stage, directive, outer_argument, part);
        part.origin = LoopAxis::Origin::split_inner;
        part.extent = factor;
        const int inner = new_axis(stage, directive, inner_argument, part);
        stage.axes[parent].children[0] = outer;
        stage.axes[parent].children[1] = inner;
        stage.axes[parent].is_loop = false;
        const auto place = std::find(stage.loop_order.begin(), stage.loop_order.end(), parent);
        *place = outer;
        stage.loop_order.insert(place + 1, inner);
        return {outer, inner};
    }

    void fuse(ScheduledStage &stage, const Directive &directive) {
        const int outer = loop(stage, directive, 0);
        const int inner = loop(stage, directive, 1);
        must_be_serial(stage, outer, directive, 0);
        must_be_serial(stage, inner, directive, 1);
        const auto place = std::find(stage.loop_order.begin(), stage.loop_order.end(), outer);
        if (place + 1 == stage.loop_order.end() || *(place + 1) != inner) {
            fail(directive, fmt::format("loop '{}' does not stand directly inside '{}'", word(directive, 1), word(directive, 0)),
                 fmt::format("reorder them first; the loops, outermost first, are {}", loop_names(stage)));
        }
        if (stage.axes[outer].reduction != stage.axes[inner].reduction) {
            fail(directive, "a reduction axis cannot be fused with an axis of the value", "fuse axes of one kind");
        }
        LoopAxis fused;
        fused.reduction = stage.axes[outer].reduction;
        fused.origin = LoopAxis::Origin::fused;
        fused.parent = outer;
        fused.second_parent = inner;
        fused.extent = stage.axes[outer].extent * stage.axes[inner].extent;
        const int index = new_axis(stage, directive, 2, fused);
        for (int parent : {outer, inner}) {
            stage.axes[parent].children[0] = index;
            stage.axes[parent].is_loop = false;
        }
        *place = index;
        stage.loop_order.erase(place + 1);
    }

    void reorder(ScheduledStage &stage, const Directive &directive) {
        std::vector<int> wanted;  // innermost first
        for (std::size_t i = 0; i < directive.arguments.size(); ++i) {
            const int index = loop(stage, directive, i);
            if (std::find(wanted.begin(), wanted.end(), index) != wanted.end()) {
                fail_at(directive, i, fmt::format("axis '{}' is named twice", word(directive, i)), "name each axis once");
            }
            wanted.push_back(index);
        }
        put_in_order(stage, wanted);
    }

    /// The named loops take the places that they hold together, innermost first.
    static void put_in_order(ScheduledStage &stage, const std::vector<int> &innermost_first) {
        auto next = innermost_first.rbegin();
        for (int &index : stage.loop_order) {
            if (std::find(innermost_first.begin(), innermost_first.end(), index) != innermost_first.end()) {
                index = *next++;
            }
        }
    }

    void tile(ScheduledStage &stage, const Directive &directive) {
        const int x = loop(stage, directive, 0);
        const int y = loop(stage, directive, 1);
        if (x == y) {
            fail_at(directive, 1, fmt::format("axis '{}' is named twice", word(directive, 1)), "tile takes two different axes");
        }
        const auto position = [&](int index) { return std::find(stage.loop_order.begin(), stage.loop_order.end(), index); };
        const bool x_outside = position(x) < position(y);
        const auto [xo, xi] = split(stage, x, directive, 0, 2, 4, number(directive, 6));
        const auto [yo, yi] = split(stage, y, directive, 1, 3, 5, number(directive, 7));
        put_in_order(stage, x_outside ? std::vector<int>{yi, xi, yo, xo} : std::vector<int>{xi, yi, xo, yo});
    }

    void set_compute(ScheduledStage &stage, const Directive &directive, ComputeLevel level) {
        if (stage.compute != ComputeLevel::unspecified) {
            fail(directive, fmt::format("stage '{}' has a place already", stage.name),
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
        const int kept = loop(result_.stages[index], directive, 0);
        must_be_serial(result_.stages[index], kept, directive, 0);
        require_reduction(result_.stages[index], kept, directive);
        if (!is_identifier(word(directive, 1))) {
            fail_at(directive, 1, fmt::format("'{}' is no name for an axis", word(directive, 1)),
                    "use letters, digits and '_', a letter first");
        }
        ScheduledStage partial;
        partial.name = directive.stage + "_partial";
        partial.partial_of = directive.stage;
        if (stage_index(partial.name) >= 0 || kernel_.find(partial.name)) {
            fail(directive, fmt::format("kernel '{}' has a stage '{}' already", kernel_.kernel, partial.name), "remove this rfactor");
        }
        ScheduledStage &stage = result_.stages[index];
        for (const LoopAxis &axis : stage.axes) {
            if (axis.origin == LoopAxis::Origin::root && !axis.reduction) {
                add_root(partial, axis.name, axis.extent, false);
            }
        }
        if (partial.find_axis(word(directive, 1)) >= 0) {
            fail_at(directive, 1, fmt::format("stage '{}' has an axis '{}' already", stage.name, word(directive, 1)),
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

    static void require_reduction(const ScheduledStage &stage, int index, const Directive &directive) {
        if (stage.axes[index].reduction) {
            return;
        }
        std::string names;
        for (int other : stage.loop_order) {
            names += stage.axes[other].reduction ? (names.empty() ? "" : " ") + stage.axes[other].name : "";
        }
        fail_at(directive, 0, fmt::format("axis '{}' of stage '{}' is no reduction axis", stage.axes[index].name, stage.name),
                names.empty() ? fmt::format("'{}' reduces nothing; remove the directive", stage.name) : "its reduction axes are " + names);
    }

    void bind(ScheduledStage &stage, const Directive &directive, Binding binding) {
        int dimension = static_cast<int>(stage.bound_to(binding).size());
        for (std::size_t i = 0; i < directive.arguments.size(); ++i) {
            const int index = loop(stage, directive, i);
            must_be_serial(stage, index, directive, i);
            if ((binding == Binding::vectorized || binding == Binding::unrolled) && !stage.axes[index].extent.is_constant()) {
                fail_at(directive, i,
                        fmt::format("axis '{}' of stage '{}' has the symbolic extent {}", word(directive, i), stage.name,
                                    stage.axes[index].extent.to_string()),
                        fmt::format("split it by a constant and {} the inner part", directive.name));
            }
            if ((binding == Binding::block || binding == Binding::thread) && dimension >= 3) {
                fail_at(directive, i, fmt::format("stage '{}' has three loops bound to {} already", stage.name, name(binding)),
                        "fuse loops before binding them");
            }
            stage.axes[index].binding = binding;
            stage.axes[index].bound_at = directive.location;
            stage.axes[index].dimension = dimension++;
        }
    }

    void flag(ScheduledStage &stage, const Directive &directive, const DirectiveSpec &spec) {
        for (std::size_t i = 0; i < directive.arguments.size(); ++i) {
            const ArgumentKind kind = spec.arguments[std::min(i, spec.arguments.size() - 1)].kind;
            if (kind == ArgumentKind::axis || kind == ArgumentKind::reduction_axis) {
                const int index = loop(stage, directive, i);
                if (kind == ArgumentKind::reduction_axis) {
                    require_reduction(stage, index, directive);
                }
            } else if (kind == ArgumentKind::stage && !kernel_.find(word(directive, i))) {
                fail_at(directive, i, fmt::format("kernel '{}' has no stage '{}'", kernel_.kernel, word(directive, i)),
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
