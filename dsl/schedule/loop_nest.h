// What a kernel's directives lead to: for each stage its loops, their order, what each loop is bound to, and where the stage is computed
// and kept. One interpreter builds it; no target reads directives by itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/graph/extent.h"
#include "dsl/schedule/schedule.h"

namespace tilewright {

// ---- What is scheduled -------------------------------------------------------------------------------------------------------------

struct NamedAxis {
    std::string name;
    Extent extent;
};

/// A stage of a kernel, or a tensor that it reads, as far as directives know it.
struct StageAxes {
    std::string name;
    std::vector<NamedAxis> axes;            ///< of the value, outermost first
    std::vector<NamedAxis> reduction_axes;  ///< in RDom order
    std::vector<std::string> reads;         ///< stages and tensors
    bool is_input = false;                  ///< a tensor in memory: only its staged copies X.in(Y) are scheduled
    bool is_output = false;                 ///< it is stored: it cannot be inlined away
    bool is_inlinable = true;               ///< its definition is one expression (no update, no extern stage)
};

struct KernelAxes {
    std::string kernel;             ///< its name, for messages
    std::vector<StageAxes> stages;  ///< tensors first, then stages, each after those that it reads
    const StageAxes *find(std::string_view stage) const;
};

// ---- What a schedule says ----------------------------------------------------------------------------------------------------------

enum class Binding { serial, parallel, vectorized, unrolled, block, thread, lane };
enum class ComputeLevel { unspecified, inlined, at, root };
enum class MemorySpace { register_file, shared, global };
std::string_view name(Binding binding);
std::string_view name(MemorySpace memory);

/// A loop of a stage. Roots are the stage's own axes; the others come from split and fuse.
struct LoopAxis {
    enum class Origin { root, split_outer, split_inner, fused };
    std::string name;
    Extent extent;  ///< of an outer part: ceil_div of its parent's
    bool reduction = false;
    Origin origin = Origin::root;
    int parent = -1;             ///< index into ScheduledStage::axes of what was split, or of the outer of the fused; -1 for a root
    int second_parent = -1;      ///< the inner of the fused
    std::int64_t factor = 0;     ///< of a split
    int children[2] = {-1, -1};  ///< outer and inner part; the fused loop stands in both of its parents' first
    Binding binding = Binding::serial;
    int dimension = 0;        ///< of a block or thread: 0 is x
    SourceLocation bound_at;  ///< of the directive that bound it
    bool is_loop = true;      ///< false once it was split, fused or moved to another stage by rfactor
};

/// A directive that is not about the shape of the nest, with its arguments.
struct ScheduleFlag {
    Directive directive;
    std::int64_t number(int argument) const { return std::get<std::int64_t>(directive.arguments.at(argument)); }
    const std::string &word(int argument) const { return std::get<std::string>(directive.arguments.at(argument)); }
};

struct ScheduledStage {
    std::string name;               ///< "dot", "x.in(dot)", "sum_partial"
    std::string copy_of, copy_for;  ///< of a staged copy: the tensor or stage, and who reads the copy
    std::string partial_of;         ///< of a stage that rfactor made
    std::vector<LoopAxis> axes;     ///< roots first (values, then reductions), then in the order in which directives made them
    std::vector<int> loop_order;    ///< the loops that are left, outermost first
    ComputeLevel compute = ComputeLevel::unspecified;
    std::string at_stage;  ///< of ComputeLevel::at
    std::string at_axis;
    SourceLocation at_location;  ///< of the directive that says where the stage is computed, else of the first that names it
    std::optional<MemorySpace> store_in;
    std::vector<ScheduleFlag> flags;  ///< in the order given
    bool is_edited = false;           ///< some directive names the stage

    int find_axis(std::string_view axis) const;  ///< index into axes; -1 where there is none
    const ScheduleFlag *find_flag(std::string_view directive) const;
    /// The flag of that name whose first argument is `axis`.
    const ScheduleFlag *find_flag(std::string_view directive, std::string_view axis) const;
    /// Loops bound so, by dimension (x first).
    std::vector<int> bound_to(Binding binding) const;
};

/// Stages in the kernel's order; staged copies and partial stages stand before the stage that reads them.
struct ScheduledKernel {
    std::string kernel;
    std::vector<ScheduledStage> stages;
    const ScheduledStage *find(std::string_view stage) const;
};

enum class ScheduleTarget { any, cpu, cuda };

/// Interprets a list of directives. Throws UserError "file:line:column: cause; repair" at the first directive that is unknown, is wrong
/// in number or kind of arguments, names what does not exist, or makes an illegal combination. Without a line the place is the directive.
/// Loops nest at first as the axes stand: values outermost first, then reductions.
ScheduledKernel apply_directives(const KernelAxes &kernel, const Directives &directives, ScheduleTarget target = ScheduleTarget::any);
/// The same without a result.
void check_directives(const KernelAxes &kernel, const Directives &directives, ScheduleTarget target = ScheduleTarget::any);
/// Checks an entry whole: every variant's directives, the conditions' axes, and that an `else` stands where extents are symbolic.
void check_entry(const KernelAxes &kernel, const KernelSchedule &entry, ScheduleTarget target = ScheduleTarget::any);

/// Index of the first variant whose conditions hold; UserError where none does.
int select_variant(const KernelAxes &kernel, const KernelSchedule &entry, const SymbolValues &symbols);
/// The extent that a condition's "stage.axis" names; UserError where there is none.
Extent condition_extent(const KernelAxes &kernel, const ScheduleVariant::Comparison &comparison);

/// The nest as indented lines, stages inside the loops that compute them.
std::string print(const ScheduledKernel &kernel);

}  // namespace tilewright
