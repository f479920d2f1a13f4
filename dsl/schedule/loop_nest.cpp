#include "dsl/schedule/loop_nest.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {

template<typename Stages> auto find_by_name(const Stages &stages, std::string_view name) -> decltype(stages.data()) {
    for (const auto &stage : stages) {
        if (stage.name == name) {
            return &stage;
        }
    }
    return nullptr;
}

/// Prints stages where they are computed: a nest of loops holds the stages placed at each loop.
class NestPrinter {
public:
    explicit NestPrinter(const ScheduledKernel &kernel) : kernel_(kernel) {}

    std::string run() {
        for (const ScheduledStage &stage : kernel_.stages) {
            if (stage.compute == ComputeLevel::inlined) {
                text_ += fmt::format("{}: inlined\n", stage.name);
            } else if (stage.compute != ComputeLevel::at) {
                print_stage(stage, 0);
            }
        }
        return std::move(text_);
    }

private:
    void print_stage(const ScheduledStage &stage, int indent) {
        std::string header = stage.name + ":";
        if (stage.store_in) {
            header += fmt::format(" in {}", name(*stage.store_in));
        }
        for (const ScheduleFlag &flag : stage.flags) {
            header += " " + flag.directive.to_string().substr(stage.name.size() + 1);
        }
        line(indent, header);
        for (int index : stage.loop_order) {
            const LoopAxis &axis = stage.axes[index];
            line(++indent,
                 fmt::format("{} {} < {}{}", loop_word(axis), axis.name, axis.extent.to_string(), axis.reduction ? " (reduction)" : ""));
            for (const ScheduledStage &inner : kernel_.stages) {
                if (inner.compute == ComputeLevel::at && inner.at_stage == stage.name && inner.at_axis == axis.name) {
                    print_stage(inner, indent + 1);
                }
            }
        }
    }

    static std::string loop_word(const LoopAxis &axis) {
        const bool has_dimension = axis.binding == Binding::block || axis.binding == Binding::thread;
        return axis.binding == Binding::serial
                   ? "for"
                   : std::string(name(axis.binding)) + (has_dimension ? fmt::format(".{}", "xyz"[axis.dimension]) : "");
    }

    void line(int indent, const std::string &text) { text_ += std::string(2 * indent, ' ') + text + "\n"; }

    const ScheduledKernel &kernel_;
    std::string text_;
};

}  // namespace

std::string_view name(Binding binding) {
    switch (binding) {
        case Binding::serial:
            return "serial";
        case Binding::parallel:
            return "parallel";
        case Binding::vectorized:
            return "vectorized";
        case Binding::unrolled:
            return "unrolled";
        case Binding::block:
            return "block";
        case Binding::thread:
            return "thread";
        case Binding::lane:
            return "lane";
    }
    return "?";
}

std::string_view name(MemorySpace memory) {
    switch (memory) {
        case MemorySpace::register_file:
            return "register";
        case MemorySpace::shared:
            return "shared";
        case MemorySpace::global:
            return "global";
    }
    return "?";
}

const StageAxes *KernelAxes::find(std::string_view stage) const { return find_by_name(stages, stage); }
const ScheduledStage *ScheduledKernel::find(std::string_view stage) const { return find_by_name(stages, stage); }

int ScheduledStage::find_axis(std::string_view axis) const {
    for (std::size_t i = 0; i < axes.size(); ++i) {
        if (axes[i].name == axis) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

const ScheduleFlag *ScheduledStage::find_flag(std::string_view directive) const {
    for (const ScheduleFlag &flag : flags) {
        if (flag.directive.name == directive) {
            return &flag;
        }
    }
    return nullptr;
}

const ScheduleFlag *ScheduledStage::find_flag(std::string_view directive, std::string_view axis) const {
    for (const ScheduleFlag &flag : flags) {
        if (flag.directive.name == directive && !flag.directive.arguments.empty() && flag.word(0) == axis) {
            return &flag;
        }
    }
    return nullptr;
}

std::vector<int> ScheduledStage::bound_to(Binding binding) const {
    std::vector<int> found;
    for (int index : loop_order) {
        if (axes[index].binding == binding) {
            found.push_back(index);
        }
    }
    std::sort(found.begin(), found.end(), [&](int a, int b) { return axes[a].dimension < axes[b].dimension; });
    return found;
}

Extent condition_extent(const KernelAxes &kernel, const ScheduleVariant::Comparison &comparison) {
    const std::size_t dot = comparison.extent.rfind('.');
    const StageAxes *stage = kernel.find(comparison.extent.substr(0, dot));
    if (stage) {
        for (const auto *axes : {&stage->axes, &stage->reduction_axes}) {
            if (const NamedAxis *axis = find_by_name(*axes, comparison.extent.substr(dot + 1))) {
                return axis->extent;
            }
        }
    }
    schedule_error(comparison.location, comparison.to_string(),
                   fmt::format("kernel '{}' has no axis '{}'", kernel.kernel, comparison.extent),
                   "name one as STAGE.AXIS; 'tilewright print --stage groups' shows them");
}

int select_variant(const KernelAxes &kernel, const KernelSchedule &entry, const SymbolValues &symbols) {
    for (std::size_t i = 0; i < entry.variants.size(); ++i) {
        const auto &conditions = entry.variants[i].conditions;
        if (std::all_of(conditions.begin(), conditions.end(),
                        [&](const auto &comparison) { return comparison.holds(condition_extent(kernel, comparison).evaluate(symbols)); })) {
            return static_cast<int>(i);
        }
    }
    schedule_error(entry.location, entry.name, fmt::format("no variant of kernel '{}' holds for these extents", entry.name),
                   "add an 'else' with directives for the rest");
}

void check_directives(const KernelAxes &kernel, const Directives &directives, ScheduleTarget target) {
    apply_directives(kernel, directives, target);
}

void check_entry(const KernelAxes &kernel, const KernelSchedule &entry, ScheduleTarget target) {
    bool is_constant = true;
    for (const ScheduleVariant &variant : entry.variants) {
        for (const auto &comparison : variant.conditions) {
            is_constant &= condition_extent(kernel, comparison).is_constant();
        }
        apply_directives(kernel, variant.directives, target);
    }
    if (!entry.variants.empty() && !entry.variants.back().conditions.empty()) {
        if (!is_constant) {
            schedule_error(entry.location, entry.name, fmt::format("kernel '{}' has symbolic extents and no 'else'", entry.name),
                           "add an 'else' with directives for the extents that no 'when' covers");
        }
        select_variant(kernel, entry, {});
    }
}

std::string print(const ScheduledKernel &kernel) { return NestPrinter(kernel).run(); }

}  // namespace tilewright
