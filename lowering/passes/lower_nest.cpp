#include "lowering/passes/lower_nest.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/passes/segments.h"
#include "lowering/passes/special_forms.h"
#include "lowering/passes/stage_values.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

tile::CombinerDefinition combiner_definition(const std::string &name, Combiner combiner, const std::vector<Halide::Type> &types) {
    tile::CombinerDefinition definition;
    definition.name = name;
    definition.kind = combiner;
    definition.types = types;
    std::vector<Expr> left, right;
    for (std::size_t i = 0; i < types.size(); ++i) {
        definition.left.push_back("a" + std::to_string(i));
        definition.right.push_back("b" + std::to_string(i));
        left.push_back(hi::Variable::make(types[i], definition.left.back()));
        right.push_back(hi::Variable::make(types[i], definition.right.back()));
    }
    if (combiner != Combiner::general) {
        definition.result = combine(combiner, left, right);
        definition.identity = identity(combiner, types);
    }
    return definition;
}

namespace {

class NestLowering {
public:
    NestLowering(const Kernel &kernel, const Placement &placement, int index, Storage &storage, const ScheduledKernel &schedule, const GpuFacts &facts)
        : kernel_(kernel), placement_(placement), nest_(placement.nests[index]), storage_(storage), schedule_(schedule), facts_(facts),
          values_(kernel, nest_, placement, storage, launch_) {}

    std::vector<tile::Launch> run() {
        launch_.name = identifier(kernel_.name + "_" + stage(nest_.anchor).name());
        launch_.axes = nest_.axes;
        launch_.blocks = nest_.blocks;
        launch_.threads = nest_.threads;
        launch_.cluster = nest_.cluster;
        launch_.min_blocks_per_multiprocessor = nest_.min_blocks;
        for (const Member &member : nest_.members) {
            add_member(member);
        }
        std::vector<SegmentLoop> loops;
        for (const NestLoop &loop : nest_.loops) {
            const tile::Leaf &leaf = nest_.leaf(loop);
            loops.push_back({leaf.name, leaf.extent, leaf.level});
        }
        launch_.body = arrange(pieces_, loops);
        std::vector<tile::Launch> launches{std::move(launch_)};
        for (tile::Launch &finish : finishing_) {
            launches.push_back(std::move(finish));
        }
        return launches;
    }

private:
    const Stage &stage(int index) const { return kernel_.algorithm.stages[index]; }

    // ---- Leaves ----
    std::set<std::string> leaves_at(const std::set<std::string> &axes, std::initializer_list<Level> levels) const {
        std::set<std::string> names;
        for (const tile::Axis &axis : nest_.axes) {
            if (!axes.count(axis.name)) {
                continue;
            }
            for (const tile::Leaf &leaf : axis.leaves) {
                if (std::find(levels.begin(), levels.end(), leaf.level) != levels.end()) {
                    names.insert(leaf.name);
                }
            }
        }
        return names;
    }
    std::set<std::string> loops_of(const std::set<std::string> &axes) const { return leaves_at(axes, {Level::loop, Level::unroll, Level::vector}); }

    /// Register dimensions of a value that varies along these axes: its unrolled and vector leaves, in nesting order.
    std::vector<const tile::Leaf *> register_leaves(const std::set<std::string> &axes) const {
        std::vector<const tile::Leaf *> result;
        for (const NestLoop &loop : nest_.loops) {
            const tile::Leaf &leaf = nest_.leaf(loop);
            if (axes.count(nest_.axes[loop.axis].name) && (leaf.level == Level::unroll || leaf.level == Level::vector)) {
                result.push_back(&leaf);
            }
        }
        return result;
    }

    tile::Buffer register_buffer(const std::string &name, const std::vector<Halide::Type> &types, const std::vector<const tile::Leaf *> &leaves) {
        tile::Buffer buffer;
        buffer.name = unique(name);
        buffer.types = types;
        buffer.memory = tile::Memory::registers;
        for (const tile::Leaf *leaf : leaves) {
            buffer.extents.push_back(leaf->extent);
        }
        buffer.strides = contiguous_strides(buffer.extents);
        launch_.buffers.push_back(buffer);
        return buffer;
    }
    std::string unique(const std::string &name) {
        std::string candidate = identifier(name);
        for (int i = 2; launch_.find_buffer(candidate) || !names_.insert(candidate).second; ++i) {
            candidate = identifier(name + "_" + std::to_string(i));
        }
        return candidate;
    }
    static std::vector<Expr> place_in(const std::vector<const tile::Leaf *> &leaves) {
        std::vector<Expr> place;
        for (const tile::Leaf *leaf : leaves) {
            place.push_back(tile::variable(leaf->name));
        }
        return place;
    }
    /// Unrolled loops over register dimensions that no loop around runs over.
    static tile::Block over(const std::vector<const tile::Leaf *> &leaves, const std::set<std::string> &around, tile::Block body) {
        for (auto leaf = leaves.rbegin(); leaf != leaves.rend(); ++leaf) {
            if (!around.count((*leaf)->name)) {
                tile::For loop{(*leaf)->name, (*leaf)->extent, (*leaf)->level, std::move(body)};
                body = {tile::Statement{std::move(loop)}};
            }
        }
        return body;
    }

    // ---- Guards ----
    std::vector<Expr> guards_of(const std::set<std::string> &axes) const {
        std::vector<Expr> guards;
        for (const tile::Axis &axis : nest_.axes) {
            if (axes.count(axis.name) && !axis.exact()) {
                guards.push_back(tile::variable(axis.name) < to_halide(axis.extent));
            }
        }
        for (const auto &[names, condition] : nest_.guards) {
            if (std::any_of(names.begin(), names.end(), [&](const std::string &n) { return axes.count(n) > 0; })) {
                guards.push_back(condition);
            }
        }
        return guards;
    }
    /// One thread of one block stores what does not vary along the axes that threads and blocks share out.
    void add_single_writer(const std::set<std::string> &axes, std::vector<Expr> &guards) const {
        std::int64_t covered = 1;
        std::vector<std::pair<std::int64_t, std::int64_t>> used;
        for (const tile::Axis &axis : nest_.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                if (leaf.level == Level::thread && axes.count(axis.name)) {
                    used.emplace_back(leaf.unit_stride.value(), leaf.unit_stride.value() * leaf.extent.value());
                }
            }
        }
        for (const tile::Axis &axis : nest_.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                if (leaf.level == Level::thread) {
                    const std::int64_t begin = leaf.unit_stride.value(), end = begin * leaf.extent.value();
                    covered = std::max(covered, end);
                    const bool overlaps = std::any_of(used.begin(), used.end(), [&](const auto &u) { return begin < u.second && u.first < end; });
                    if (!axes.count(axis.name) && !overlaps) {
                        guards.push_back(tile::variable(leaf.name) == 0);
                        used.emplace_back(begin, end);
                    }
                } else if ((leaf.level == Level::grid || leaf.level == Level::cluster) && !axes.count(axis.name)) {
                    guards.push_back(tile::variable(leaf.name) == 0);
                }
            }
        }
        std::int64_t reached = 1;
        for (const auto &[begin, end] : used) {
            reached = std::max(reached, end);
        }
        if (reached < nest_.threads) {
            guards.push_back(tile::variable("thread.rank") < static_cast<int>(reached));
        }
    }
    static tile::Block guarded(const std::vector<Expr> &guards, tile::Block body) {
        for (auto guard = guards.rbegin(); guard != guards.rend(); ++guard) {
            tile::If statement{*guard, std::move(body)};
            body = {tile::Statement{std::move(statement)}};
        }
        return body;
    }

    // ---- Pieces ----
    /// Pieces whose values `e` reads.
    std::vector<int> needs_of(const std::vector<Expr> &expressions) const {
        std::vector<int> needs;
        for (const Expr &e : expressions) {
            visit_reads(e, [&](const hi::Call *call) {
                if (split_.count(call->name)) {
                    user_error("kernel {}: '{}' is summed over several blocks and read in the same pass; compute its reader at the root", kernel_.name, call->name);
                }
                if (auto found = piece_of_.find(call->name); found != piece_of_.end()) {
                    needs.push_back(found->second);
                }
            });
        }
        std::sort(needs.begin(), needs.end());
        needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
        return needs;
    }
    int add_piece(Piece piece) {
        pieces_.push_back(std::move(piece));
        return static_cast<int>(pieces_.size()) - 1;
    }
    static std::set<std::string> joined(std::set<std::string> a, const std::set<std::string> &b) {
        a.insert(b.begin(), b.end());
        return a;
    }

    void add_member(const Member &member) {
        const Stage &s = stage(member.stage);
        if (member.in_shared) {
            add_tile(member);
            return;
        }
        const hi::Function function = s.func.function();
        if (!function.has_update_definition()) {
            add_value(member);
            return;
        }
        const auto fold = match_fold(s.func);
        internal_assert(fold.has_value(), "stage {} is no fold", s.name());
        fold->scan_axis >= 0 ? add_scan(member, *fold) : add_reduction(member, *fold);
    }

    void add_value(const Member &member) {
        const Stage &s = stage(member.stage);
        const hi::Function function = s.func.function();
        std::vector<Expr> values;
        for (const Expr &e : function.definition().values()) {
            values.push_back(values_.evaluate(e, member.environment, member.stage));
        }
        if (is_read_in_nest(member.stage)) {
            const auto leaves = register_leaves(member.axes);
            const tile::Buffer buffer = register_buffer(s.name(), s.func.types(), leaves);
            Piece piece;
            piece.name = s.name();
            piece.loops = loops_of(member.axes);
            piece.needs = needs_of(values);
            const std::vector<Expr> guards = guards_of(member.axes);
            piece.body = [=] { return guarded(guards, {tile::Statement{tile::Store{buffer.name, place_in(leaves), values}}}); };
            piece_of_[buffer.name] = add_piece(piece);
            values_.keep(member.stage, buffer, place_in(leaves));
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = tile::read(buffer, place_in(leaves), static_cast<int>(i));
            }
        }
        add_stores(member, values);
    }

    bool is_read_in_nest(int producer) const {
        const std::string name = stage(producer).name();
        std::vector<int> pending;
        std::set<int> seen;
        for (const Member &member : nest_.members) {
            pending.push_back(member.stage);
        }
        while (!pending.empty()) {
            const int at = pending.back();
            pending.pop_back();
            if (!seen.insert(at).second) {
                continue;
            }
            for (const Read &read : reads_of(stage(at))) {
                if (read.from_input) {
                    continue;
                }
                const int index = stage_index(kernel_.algorithm, read.producer);
                if (index == producer && at != producer) {
                    return true;
                }
                if (index >= 0 && placement_.nest_of[index] < 0) {
                    pending.push_back(index);
                }
            }
        }
        return false;
    }

    /// Stores of the member's elements to every buffer that holds them, as pieces of their own.
    void add_stores(const Member &member, const std::vector<Expr> &values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            for (const tile::Buffer &target : storage_.targets(member.stage, static_cast<int>(i))) {
                values_.use(target);
                Piece piece;
                piece.name = stage(member.stage).name() + " to " + target.name;
                piece.loops = loops_of(member.axes);
                piece.needs = needs_of({values[i]});
                std::vector<Expr> guards = guards_of(member.axes);
                add_single_writer(member.axes, guards);
                const tile::Store store{target.name, member.places, {values[i]}};
                piece.body = [=] { return guarded(guards, {tile::Statement{store}}); };
                add_piece(piece);
            }
        }
    }

    // ---- Reductions ----
    void add_reduction(const Member &member, const Fold &fold) {
        const Stage &s = stage(member.stage);
        const std::vector<Halide::Type> types = s.func.types();
        const auto leaves = register_leaves(member.axes);
        const std::vector<Expr> place = place_in(leaves);
        check_loops(member, s);
        tile::CombinerDefinition definition = combiner_definition(unique(s.name() + "_combine"), fold.combiner, types);
        tile::Buffer buffer = register_buffer(s.name(), types, leaves);
        if (types.size() > 1) {
            launch_.find_buffer(buffer.name)->combiner = buffer.combiner = definition.name;
        }
        values_.keep(member.stage, buffer, place);
        std::vector<Expr> initial, terms;
        for (const Expr &e : fold.initial) {
            initial.push_back(values_.evaluate(e, member.environment, member.stage));
        }
        for (const Expr &e : fold.terms) {
            terms.push_back(values_.evaluate(e, member.environment, member.stage, &buffer));
        }
        launch_.combiners.push_back(definition);
        const bool general = fold.combiner == Combiner::general;
        const std::set<std::string> all = joined(member.axes, member.reduction_axes);
        const Form form = classify(s);
        const bool has_tile = !general && (form == Form::contraction || form == Form::window) && !register_leaves(member.axes).empty();
        const bool all_kept = has_tile && keep_operands(s, all, terms);
        for (const ScheduledStage &copy : schedule_.stages) {
            if (copy.copy_for == s.name() && copy.is_edited && !staged_.count(copy.name)) {
                schedule_error(copy.at_location, copy.name, "it is no tile of one axis of threads and registers by an unrolled number of terms", "remove the copy");
            }
        }
        // Terms that one thread holds in registers are folded together first, which costs less than one by one.
        const std::set<std::string> held = leaves_at(member.reduction_axes, {Level::unroll, Level::vector});
        std::optional<RegisterFold> together;
        if (!held.empty()) {
            together = fold_registers(member, fold.combiner, terms, held);
            terms = together ? together->terms : terms;
        }
        Piece piece;
        piece.name = s.name();
        piece.loops = loops_of(all);
        piece.reduces = loops_of(member.reduction_axes);
        if (together) {
            for (const std::string &leaf : held) {
                piece.loops.erase(leaf);
                piece.reduces.erase(leaf);
            }
        }
        std::vector<Expr> read = terms;
        read.insert(read.end(), initial.begin(), initial.end());
        piece.needs = needs_of(read);
        const std::vector<Expr> start = general ? initial : definition.identity;
        piece.begin = [=](const std::set<std::string> &around) { return over(leaves, around, {tile::Statement{tile::Store{buffer.name, place, start}}}); };
        // Operands outside of their tensors are zeros in registers, and sums of elements outside of the result are never stored.
        const bool is_product = fold.combiner == Combiner::sum && terms.size() == 1 && terms[0].as<hi::Mul>();
        const std::vector<Expr> guards = together || (all_kept && is_product) ? std::vector<Expr>() : guards_of(all_kept ? member.reduction_axes : all);
        piece.body = [=] {
            tile::Statement step = general ? tile::Statement{tile::Store{buffer.name, place, terms}}
                                           : tile::Statement{tile::Fold{buffer.name, definition.name, place, terms}};
            return guarded(guards, {step});
        };
        const std::vector<tile::Combine::Group> groups = thread_groups(member.reduction_axes);
        if (!groups.empty() && (general || fold.combiner == Combiner::last)) {
            user_error("kernel {}: stage '{}' folds in order and its reduction is spread over threads; keep its reduction axes serial", kernel_.name, s.name());
        }
        const bool has_initial = !general && !is_identity(fold.initial, definition.identity);
        const bool split = !leaves_at(member.reduction_axes, {Level::grid}).empty();
        piece.end = [=, this](const std::set<std::string> &around) {
            tile::Block block;
            if (!groups.empty()) {
                block.push_back({tile::Combine{buffer.name, definition.name, place, groups, exchange_buffer(buffer, groups), 1}});
            }
            if (has_initial && !split) {
                block.push_back({tile::Fold{buffer.name, definition.name, place, initial}});
            }
            return over(leaves, around, block);
        };
        const int index = add_piece(piece);
        piece_of_[buffer.name] = index;
        std::vector<Expr> values;
        for (std::size_t i = 0; i < types.size(); ++i) {
            values.push_back(tile::read(buffer, place, static_cast<int>(i)));
        }
        split ? add_split(member, fold, definition, values) : add_stores(member, values);
        if (split) {
            split_.insert(buffer.name);
        }
    }

    // ---- Operands of a tile in registers ----
    /// Parts of the terms that vary along fewer register dimensions than the whole are loaded or computed once, into registers of their own.
    /// Whether nothing else of the terms is read from memory.
    bool keep_operands(const Stage &s, const std::set<std::string> &all, std::vector<Expr> &terms) {
        class Keep : public hi::IRGraphMutator {
        public:
            Keep(NestLowering &nest, const Stage &stage, const std::set<std::string> &all) : nest_(nest), stage_(stage), all_(nest.register_leaves(all).size()) {}
            using hi::IRGraphMutator::mutate;
            using hi::IRGraphMutator::visit;
            Expr mutate(const Expr &e) override {
                if (e.defined() && nest_.reads_memory(e)) {
                    const std::set<std::string> axes = nest_.axes_of(e);
                    if (nest_.register_leaves(axes).size() < all_) {
                        if (const auto staged = nest_.staged_operand(stage_, axes, e)) {
                            return *staged;
                        }
                        return nest_.kept_operand(stage_, axes, e);
                    }
                }
                return hi::IRGraphMutator::mutate(e);
            }
            // What stands under a condition or a name is not moved out of it.
            Expr visit(const hi::Select *op) override { return op; }
            Expr visit(const hi::Let *op) override { return op; }

        private:
            NestLowering &nest_;
            const Stage &stage_;
            std::size_t all_;
        };
        Keep keep(*this, s, all);
        bool complete = true;
        for (Expr &term : terms) {
            term = keep.mutate(term);
            complete = complete && !reads_memory(term);
        }
        return complete;
    }
    bool reads_memory(const Expr &e) const {
        bool found = false;
        visit_reads(e, [&](const hi::Call *call) {
            const tile::Buffer *buffer = launch_.find_buffer(call->name);
            found = found || !buffer || buffer->memory != tile::Memory::registers;
        });
        return found;
    }
    std::set<std::string> axes_of(const Expr &e) const {
        std::set<std::string> axes;
        for (const std::string &name : variables_of(e)) {
            if (nest_.find_axis(name)) {
                axes.insert(name);
            }
        }
        return axes;
    }

    Expr kept_operand(const Stage &s, const std::set<std::string> &axes, const Expr &value) {
        for (const auto &[known, read] : operands_) {
            if (hi::graph_equal(known, value)) {
                return read;
            }
        }
        auto leaves = register_leaves(axes);
        const tile::Leaf *vector = vector_leaf(axes, value);
        std::stable_sort(leaves.begin(), leaves.end(), [&](const tile::Leaf *a, const tile::Leaf *b) { return (a == vector) < (b == vector); });
        const tile::Buffer buffer = register_buffer(s.name() + "_operand", {value.type()}, leaves);
        Piece piece;
        piece.name = buffer.name;
        piece.loops = leaves_at(axes, {Level::loop});
        piece.needs = needs_of({value});
        const auto [whole, each] = operand_guards(axes, vector);
        const bool is_guarded = !whole.empty() || !each.empty();
        const auto loops = [=](tile::Block body, bool outside) {
            if (vector) {
                body = {tile::Statement{tile::For{vector->name, vector->extent, Level::vector, std::move(body)}}};
            }
            if (outside) {
                body = guarded(whole, std::move(body));
            }
            for (auto leaf = leaves.rbegin(); leaf != leaves.rend(); ++leaf) {
                if (*leaf != vector) {
                    body = {tile::Statement{tile::For{(*leaf)->name, (*leaf)->extent, Level::unroll, std::move(body)}}};
                }
            }
            return body;
        };
        piece.body = [=] {
            const std::vector<Expr> place = place_in(leaves);
            tile::Block block;
            if (is_guarded) {
                block = loops({tile::Statement{tile::Store{buffer.name, place, {hi::make_zero(value.type())}}}}, false);
            }
            const tile::Block load = loops(guarded(each, {tile::Statement{tile::Store{buffer.name, place, {value}}}}), true);
            block.insert(block.end(), load.begin(), load.end());
            return block;
        };
        piece_of_[buffer.name] = add_piece(piece);
        operands_.emplace_back(value, tile::read(buffer, place_in(leaves)));
        return operands_.back().second;
    }

    // ---- Operands that the block keeps in shared memory ----
    /// A tile of a tensor whose copy the schedule puts into shared memory: all threads fill it for each step along the terms, and each
    /// loads its part of one term at a time.
    std::optional<Expr> staged_operand(const Stage &s, const std::set<std::string> &axes, const Expr &value) {
        const hi::Call *read = nullptr;
        int reads = 0;
        visit_reads(value, [&](const hi::Call *call) {
            read = call;
            ++reads;
        });
        const ScheduledStage *copy = reads == 1 ? copy_of(s, read->name) : nullptr;
        if (!copy) {
            return std::nullopt;
        }
        for (const auto &[known, kept] : operands_) {
            if (hi::graph_equal(known, value)) {
                return kept;
            }
        }
        const tile::Axis *rows = nullptr, *terms = nullptr;
        for (const std::string &name : axes) {
            const tile::Axis *axis = nest_.find_axis(name);
            const bool spread = std::any_of(axis->leaves.begin(), axis->leaves.end(), [](const tile::Leaf &l) { return l.level != Level::grid; });
            const bool has_threads = std::any_of(axis->leaves.begin(), axis->leaves.end(), [](const tile::Leaf &l) { return l.level == Level::thread; });
            const tile::Axis *&role = has_threads ? rows : terms;
            if (spread && role) {
                return std::nullopt;
            }
            role = spread ? axis : role;
        }
        if (!rows || !terms || terms->leaves.back().level != Level::unroll || !(terms->leaves.back().stride == Extent(1))) {
            return std::nullopt;
        }
        const tile::Leaf &term = terms->leaves.back(), &lane = rows->leaves.back();
        const tile::Leaf *group = nullptr;
        std::int64_t tile = 1;
        Expr row_base = 0, term_base = 0, own = 0;
        for (const tile::Leaf &leaf : rows->leaves) {
            const Expr part = tile::variable(leaf.name) * to_halide(leaf.stride);
            if (leaf.level == Level::grid) {
                row_base = row_base + part;
                continue;
            }
            tile *= leaf.extent.value();
            own = &leaf == &lane ? own : own + part;
            if (leaf.level != Level::thread && &leaf != &lane) {
                if (group || leaf.level != Level::unroll) {
                    return std::nullopt;
                }
                group = &leaf;
            }
        }
        for (const tile::Leaf &leaf : terms->leaves) {
            if (&leaf != &term) {
                if (leaf.level != Level::loop && leaf.level != Level::grid) {
                    return std::nullopt;
                }
                term_base = term_base + tile::variable(leaf.name) * to_halide(leaf.stride);
            }
        }
        const std::int64_t depth = term.extent.value(), lanes = lane.extent.value();
        const bool in_registers = lane.level == Level::unroll || lane.level == Level::vector;
        const bool guarded_apart = std::any_of(nest_.guards.begin(), nest_.guards.end(), [&](const auto &g) { return g.first.count(rows->name) || g.first.count(terms->name); });
        if (!in_registers || lanes * value.type().bytes() > 16 || (lanes & (lanes - 1)) != 0 || tile * depth % nest_.threads != 0 || guarded_apart) {
            return std::nullopt;
        }
        tile::Buffer shared;
        shared.name = unique(s.name() + "_tile");
        shared.types = {value.type()};
        shared.memory = tile::Memory::shared;
        shared.extents = {depth, tile};
        shared.strides = {tile + 16 / value.type().bytes(), 1};  // rows of terms begin in different banks
        shared.alignment = 16;
        launch_.buffers.push_back(shared);
        // Neighbouring threads read neighbours in memory.
        const tile::Buffer &source = *launch_.find_buffer(read->name);
        bool along_terms = false;
        for (std::size_t i = 0; i < read->args.size(); ++i) {
            along_terms = along_terms || (source.strides[i] == Extent(1) && mentions(read->args[i], terms->name));
        }
        const std::string piece_name = shared.name + "_piece", row_name = shared.name + "_row", term_name = shared.name + "_term";
        const Expr place = tile::variable(piece_name) * nest_.threads + tile::variable("thread.rank");
        const int fast = static_cast<int>(along_terms ? depth : tile);
        const Expr row = tile::variable(row_name), at_term = tile::variable(term_name);
        const Expr row_place = row_base + row, term_place = term_base + at_term;
        Expr copied = substitute_variables(value, {{rows->name, row_place}, {terms->name, term_place}});
        Expr inside;
        for (const auto &[axis, index] : {std::pair(rows, row_place), std::pair(terms, term_place)}) {
            if (!axis->exact()) {
                const Expr condition = index < to_halide(axis->extent);
                inside = inside.defined() ? inside && condition : condition;
            }
        }
        copied = inside.defined() ? hi::Select::make(inside, copied, hi::make_zero(value.type())) : copied;
        const auto copies = std::count_if(schedule_.stages.begin(), schedule_.stages.end(), [&](const ScheduledStage &c) { return c.copy_for == s.name() && c.is_edited; });
        const bool is_last = static_cast<std::ptrdiff_t>(staged_.size()) + 1 == copies;
        Piece fill;
        fill.name = shared.name;
        fill.loops = leaves_at({terms->name}, {Level::loop});
        fill.body = [=, pieces = tile * depth / nest_.threads] {
            tile::Block body{tile::Statement{tile::Let{row_name, along_terms ? place / fast : place % fast}},
                             tile::Statement{tile::Let{term_name, along_terms ? place % fast : place / fast}},
                             tile::Statement{tile::Store{shared.name, {at_term, row}, {copied}}}};
            tile::For loop{piece_name, pieces, Level::unroll, std::move(body)};
            loop.disjoint = true;
            tile::Block block{tile::Statement{std::move(loop)}};
            if (is_last) {  // one barrier for all tiles, before the loops that read them
                block.push_back({tile::Barrier{}});
            }
            return block;
        };
        const int filled = add_piece(fill);
        tile::Buffer registers;
        registers.name = unique(s.name() + "_operand") + ".vec";
        registers.types = {value.type()};
        registers.memory = tile::Memory::registers;
        registers.extents = {group ? group->extent : Extent(1), lanes};
        registers.strides = contiguous_strides(registers.extents);
        launch_.buffers.push_back(registers);
        const Expr vector = group ? tile::variable(group->name) : Expr(0);
        Piece load;
        load.name = registers.name;
        load.loops = fill.loops;
        load.loops.insert(term.name);
        load.needs = {filled};
        load.body = [=, term_name = term.name] {
            tile::VectorLoad statement{registers.name, shared.name, {tile::variable(term_name), own}, static_cast<int>(lanes), {vector}, {}};
            tile::Block body{tile::Statement{statement}};
            return group ? tile::Block{tile::Statement{tile::For{group->name, group->extent, Level::unroll, std::move(body)}}} : body;
        };
        piece_of_[registers.name] = add_piece(load);
        staged_.insert(copy->name);
        operands_.emplace_back(value, tile::read(registers, {vector, tile::variable(lane.name)}));
        return operands_.back().second;
    }
    const ScheduledStage *copy_of(const Stage &s, const std::string &buffer) const {
        for (const ScheduledStage &copy : schedule_.stages) {
            const bool is_input = copy.copy_for == s.name() && copy.is_edited && kernel_.algorithm.find_input(copy.copy_of);
            if (is_input && storage_.input(copy.copy_of).name == buffer) {
                return &copy;
            }
        }
        return nullptr;
    }

    /// The register leaf along which what is read lies together in memory.
    const tile::Leaf *vector_leaf(const std::set<std::string> &axes, const Expr &value) const {
        const tile::Leaf *found = nullptr;
        visit_reads(value, [&](const hi::Call *call) {
            const tile::Buffer *buffer = launch_.find_buffer(call->name);
            for (std::size_t i = 0; buffer && !found && i < call->args.size(); ++i) {
                if (!(buffer->strides[i] == Extent(1))) {
                    continue;
                }
                for (const std::string &name : variables_of(call->args[i])) {
                    const tile::Axis *axis = axes.count(name) ? nest_.find_axis(name) : nullptr;
                    const tile::Leaf *last = axis && !axis->leaves.empty() ? &axis->leaves.back() : nullptr;
                    const bool in_registers = last && (last->level == Level::unroll || last->level == Level::vector);
                    if (in_registers && last->stride == Extent(1) && last->extent.is_constant() && last->extent.value() > 1) {
                        found = last;
                    }
                }
            }
        });
        return found;
    }
    /// Conditions of a whole vector, and those of each element.
    std::pair<std::vector<Expr>, std::vector<Expr>> operand_guards(const std::set<std::string> &axes, const tile::Leaf *vector) const {
        std::vector<Expr> whole, each;
        for (const Expr &guard : guards_of(axes)) {
            const auto *less = guard.as<hi::LT>();
            const tile::Axis *axis = less ? nest_.find_axis(as_variable(less->a)) : nullptr;
            const bool has_vector = axis && vector && &axis->leaves.back() == vector;
            if (has_vector && mod(axis->extent, vector->extent) == Extent(0)) {
                Expr first = 0;
                for (const tile::Leaf &leaf : axis->leaves) {
                    first = &leaf == vector ? first : first + tile::variable(leaf.name) * to_halide(leaf.stride);
                }
                whole.push_back(simplify_index(first, nest_.ranges) < less->b);
                continue;
            }
            const std::set<std::string> varying = axes_of(guard);
            const bool mentions_vector = vector && std::any_of(varying.begin(), varying.end(), [&](const std::string &name) { return &nest_.find_axis(name)->leaves.back() == vector; });
            (mentions_vector ? each : whole).push_back(guard);
        }
        return {whole, each};
    }

    struct RegisterFold {
        std::vector<Expr> terms;  ///< of all that was held, as one term of the fold
    };
    static bool is_constant(const Expr &e, double value) {
        const auto *op = e.as<hi::FloatImm>();
        return op && op->value == value;
    }
    /// Moments: the mean of what is held, then the squares around it (two multiply-adds a term, no division). Log-sum-exp: the maximum,
    /// then one exponential a term. Empty for other combiners and for terms that are partial results themselves.
    std::optional<RegisterFold> fold_registers(const Member &member, Combiner combiner, const std::vector<Expr> &terms, const std::set<std::string> &held) {
        const bool moments = combiner == Combiner::welford && is_constant(terms[1], 0) && is_constant(terms[2], 1);
        const bool exponentials = combiner == Combiner::log_sum_exp && is_constant(terms[1], 1);
        if (!moments && !exponentials) {
            return std::nullopt;
        }
        const Stage &s = stage(member.stage);
        const Halide::Type type = terms[0].type();
        const std::set<std::string> all = joined(member.axes, member.reduction_axes);
        const auto leaves = register_leaves(all), own = register_leaves(member.axes);
        const std::vector<Expr> place = place_in(leaves), own_place = place_in(own), guards = guards_of(all);
        const auto scalar = [&](const std::string &suffix, Combiner kind) {
            const tile::Buffer buffer = register_buffer(s.name() + suffix, {type}, own);
            const tile::CombinerDefinition definition = combiner_definition(unique(buffer.name + "_combine"), kind, {type});
            launch_.combiners.push_back(definition);
            return std::pair(buffer, definition);
        };
        const auto add = [&](const std::pair<tile::Buffer, tile::CombinerDefinition> &into, const Expr &term, const std::vector<int> &needs, tile::Block first) {
            Piece piece;
            piece.name = into.first.name;
            piece.loops = loops_of(all);
            piece.reduces = held;
            piece.needs = needs;
            const auto [buffer, definition] = into;
            piece.begin = [=](const std::set<std::string> &around) {
                return over(own, around, {tile::Statement{tile::Store{buffer.name, own_place, definition.identity}}});
            };
            piece.body = [=] {
                tile::Block block = first;
                block.push_back({tile::Fold{buffer.name, definition.name, own_place, {term}}});
                return guarded(guards, block);
            };
            return piece_of_[buffer.name] = add_piece(piece);
        };
        const tile::Buffer kept = register_buffer(s.name() + "_terms", {type}, leaves);
        const Expr term = tile::read(kept, place);
        const tile::Block keep{tile::Statement{tile::Store{kept.name, place, {terms[0]}, false}}};
        const std::vector<int> needs = needs_of(terms);
        if (exponentials) {
            const auto top = scalar("_top", Combiner::maximum), rest = scalar("_rest", Combiner::sum);
            const int first = add(top, term, needs, keep);
            const Expr top_value = tile::read(top.first, own_place);
            const Expr shift = hi::Select::make(math::isinf(top_value), hi::make_zero(type), top_value);
            add(rest, math::exp(term - shift), {first}, {});
            return RegisterFold{{top_value, tile::read(rest.first, own_place)}};
        }
        const auto sum = scalar("_sum", Combiner::sum), squares = scalar("_squares", Combiner::sum);
        const Expr one = hi::make_one(type);
        Expr count = one;
        std::vector<int> after;
        if (guards.empty()) {
            for (const tile::Axis &axis : nest_.axes) {
                for (const tile::Leaf &leaf : axis.leaves) {
                    count = held.count(leaf.name) ? hi::make_const(type, count.as<hi::FloatImm>()->value * static_cast<double>(leaf.extent.value())) : count;
                }
            }
        } else {
            const auto counted = scalar("_count", Combiner::sum);
            after.push_back(add(counted, one, {}, {}));
            count = tile::read(counted.first, own_place);
        }
        const int first = add(sum, term, needs, keep);
        after.push_back(first);
        const Expr mean = tile::read(sum.first, own_place) / math::maximum(count, one);
        const Expr deviation = term - mean;
        add(squares, deviation * deviation, after, {});
        return RegisterFold{{mean, tile::read(squares.first, own_place), count}};
    }

    static bool is_identity(const std::vector<Expr> &initial, const std::vector<Expr> &identity) {
        for (std::size_t i = 0; i < initial.size(); ++i) {
            if (!hi::graph_equal(initial[i], identity[i])) {
                return false;
            }
        }
        return true;
    }

    /// Accumulators live in registers: a serial loop over the value may not stand inside of one that it reduces.
    void check_loops(const Member &member, const Stage &s) const {
        bool reducing = false;
        for (const NestLoop &loop : nest_.loops) {
            const std::string &axis = nest_.axes[loop.axis].name;
            reducing = reducing || member.reduction_axes.count(axis) > 0;
            if (reducing && member.axes.count(axis) && nest_.leaf(loop).level == Level::loop && !(nest_.leaf(loop).extent == Extent(1))) {
                user_error("kernel {}: stage '{}' is reduced over a loop that stands outside of its own loop '{}', so that its partial results would not "
                           "fit in registers; unroll '{}' or move it outside", kernel_.name, s.name(), nest_.leaf(loop).name, nest_.leaf(loop).name);
            }
        }
    }

    std::vector<tile::Combine::Group> thread_groups(const std::set<std::string> &axes) const {
        std::vector<tile::Combine::Group> groups;
        for (const tile::Axis &axis : nest_.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                if (axes.count(axis.name) && leaf.level == Level::thread && leaf.extent.value() > 1) {
                    groups.push_back({static_cast<int>(leaf.extent.value()), static_cast<int>(leaf.unit_stride.value())});
                }
            }
        }
        std::sort(groups.begin(), groups.end(), [](const auto &a, const auto &b) { return a.stride < b.stride; });
        std::vector<tile::Combine::Group> merged;
        for (const auto &group : groups) {
            if (!merged.empty() && merged.back().stride * merged.back().size == group.stride) {
                merged.back().size *= group.size;
            } else {
                merged.push_back(group);
            }
        }
        return merged;
    }

    /// Shared memory that threads exchange through; none within a warp.
    std::string exchange_buffer(const tile::Buffer &value, const std::vector<tile::Combine::Group> &groups) {
        const bool within_warp = std::all_of(groups.begin(), groups.end(), [](const auto &g) {
            const bool powers = (g.size & (g.size - 1)) == 0 && (g.stride & (g.stride - 1)) == 0;
            return powers && g.size * g.stride <= 32;
        });
        if (within_warp) {
            return "";
        }
        const std::string name = value.name + "_exchange";
        if (!launch_.find_buffer(name)) {
            tile::Buffer buffer = value;
            buffer.name = name;
            buffer.memory = tile::Memory::shared;
            const bool neighbours = groups.size() == 1 && groups[0].stride == 1 && groups[0].size % 32 == 0;
            buffer.extents = {neighbours ? (nest_.threads + 31) / 32 : nest_.threads};
            buffer.strides = {1};
            launch_.buffers.push_back(buffer);
        }
        return name;
    }

    /// Blocks leave partial results; a launch of its own combines them in a fixed order.
    void add_split(const Member &member, const Fold &fold, const tile::CombinerDefinition &definition, const std::vector<Expr> &values) {
        const Stage &s = stage(member.stage);
        std::vector<Expr> part;
        std::vector<Extent> extents;
        for (const tile::Axis &axis : nest_.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                if (member.reduction_axes.count(axis.name) && leaf.level == Level::grid) {
                    part.push_back(tile::variable(leaf.name));
                    extents.push_back(leaf.extent);
                }
            }
        }
        const std::size_t parts = extents.size();
        extents.insert(extents.end(), s.extents.begin(), s.extents.end());
        std::vector<Expr> place = part;
        place.insert(place.end(), member.places.begin(), member.places.end());
        std::vector<Expr> guards = guards_of(member.axes);
        add_single_writer(joined(member.axes, member.reduction_axes), guards);
        add_thread_zero(member, guards);
        std::vector<tile::Buffer> partials;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::string name = identifier(s.name()) + "_partial" + (values.size() > 1 ? std::to_string(i) : "");
            partials.push_back(storage_.scratch(name, values[i].type(), extents));
            launch_.buffers.push_back(partials.back());
            Piece piece;
            piece.name = s.name() + " partial";
            piece.loops = loops_of(member.axes);
            piece.needs = needs_of({values[i]});
            const tile::Store store{partials.back().name, place, {values[i]}};
            piece.body = [=] { return guarded(guards, {tile::Statement{store}}); };
            add_piece(piece);
        }
        finishing_.push_back(finish_launch(s, member.stage, fold, definition, partials, extents, parts));
    }
    /// After the threads have combined, one of them stores.
    void add_thread_zero(const Member &member, std::vector<Expr> &guards) const {
        for (const tile::Axis &axis : nest_.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                if (member.reduction_axes.count(axis.name) && leaf.level == Level::thread) {
                    guards.push_back(tile::variable(leaf.name) == 0);
                }
            }
        }
    }

    /// Threads: 32 neighbouring elements by 8 shares of the parts.
    tile::Launch finish_launch(const Stage &s, int index, const Fold &fold, const tile::CombinerDefinition &definition,
                               const std::vector<tile::Buffer> &partials, const std::vector<Extent> &extents, std::size_t parts) {
        tile::Launch launch;
        launch.name = identifier(kernel_.name + "_" + s.name() + "_finish");
        const Extent elements = product(s.extents);
        Extent part_count = 1;
        for (std::size_t i = 0; i < parts; ++i) {
            part_count = part_count * extents[i];
        }
        constexpr int columns = 32, shares = 8;
        tile::Axis element{"element", elements, {{"element_block", ceil_div(elements, columns), Level::grid, columns, 1},
                                                 {"element_lane", columns, Level::thread, 1, 1}}};
        tile::Axis part{"part", part_count, {{"part_step", ceil_div(part_count, shares), Level::loop, shares, 1},
                                             {"part_share", shares, Level::thread, 1, columns}}};
        launch.axes = {element, part};
        launch.blocks = ceil_div(elements, columns);
        launch.threads = columns * shares;
        launch.combiners = {definition};
        tile::Buffer total;
        total.name = identifier(s.name()) + "_total";
        total.types = s.func.types();
        total.memory = tile::Memory::registers;
        total.combiner = total.types.size() > 1 ? definition.name : "";
        tile::Buffer exchange = total;
        exchange.name += "_exchange";
        exchange.memory = tile::Memory::shared;
        exchange.extents = {columns * shares};
        exchange.strides = {1};
        launch.buffers = {total, exchange};
        std::vector<Expr> terms;
        for (tile::Buffer flat : partials) {
            flat.extents = {part_count, elements};
            flat.strides = {elements, 1};
            launch.buffers.push_back(flat);
            terms.push_back(tile::read(flat, {tile::variable("part"), tile::variable("element")}));
        }
        std::vector<Expr> guards;
        if (!element.exact()) {
            guards.push_back(tile::variable("element") < to_halide(elements));
        }
        const std::vector<Expr> store_guards = guards;
        if (!part.exact()) {
            guards.push_back(tile::variable("part") < to_halide(part_count));
        }
        launch.body.push_back({tile::Store{total.name, {}, definition.identity}});
        tile::For loop{"part_step", part.leaves[0].extent, Level::loop, guarded(guards, {tile::Statement{tile::Fold{total.name, definition.name, {}, terms}}})};
        launch.body.push_back({loop});
        launch.body.push_back({tile::Combine{total.name, definition.name, {}, {{shares, columns}}, exchange.name, 1}});
        std::vector<Expr> places = unflatten(s.extents, tile::variable("element"));
        tile::Block stores;
        if (!is_identity(fold.initial, definition.identity)) {
            Substitution environment;
            for (std::size_t i = 0; i < places.size(); ++i) {
                environment[s.func.function().args()[i]] = places[i];
            }
            std::vector<Expr> initial;
            for (const Expr &e : fold.initial) {
                if (contains_read(e)) {
                    user_error("kernel {}: the initial value of '{}' is read from a tensor, so its reduction cannot be split over blocks", kernel_.name, s.name());
                }
                initial.push_back(substitute_variables(e, environment));
            }
            stores.push_back({tile::Fold{total.name, definition.name, {}, initial}});
        }
        for (std::size_t i = 0; i < total.types.size(); ++i) {
            for (const tile::Buffer &target : storage_.targets(index, static_cast<int>(i))) {
                if (!launch.find_buffer(target.name)) {
                    launch.buffers.push_back(target);
                }
                stores.push_back({tile::Store{target.name, places, {tile::read(total, {}, static_cast<int>(i))}}});
            }
        }
        std::vector<Expr> writer = store_guards;
        writer.push_back(tile::variable("part_share") == 0);
        tile::Block last = guarded(writer, stores);
        launch.body.insert(launch.body.end(), last.begin(), last.end());
        return launch;
    }

    // ---- Scans ----
    void add_scan(const Member &member, const Fold &fold) {
        const Stage &s = stage(member.stage);
        const std::vector<Halide::Type> types = s.func.types();
        const std::string axis_name = as_variable(member.environment.at(s.func.function().args()[fold.scan_axis]));
        const tile::Axis *axis = nest_.find_axis(axis_name);
        if (!axis) {
            user_error("kernel {}: stage '{}' scans along an axis that is fused with others; leave it apart", kernel_.name, s.name());
        }
        const auto leaves = register_leaves(member.axes);
        const std::vector<Expr> place = place_in(leaves);
        const tile::CombinerDefinition definition = combiner_definition(unique(s.name() + "_combine"), fold.combiner, types);
        launch_.combiners.push_back(definition);
        std::vector<Expr> terms;
        for (const Expr &e : fold.terms) {
            terms.push_back(values_.evaluate(e, member.environment, member.stage));
        }
        const ScanShape shape = scan_shape(*axis, s);
        tile::Buffer result = register_buffer(s.name(), types, leaves);
        set_combiner(result, definition);
        values_.keep(member.stage, result, place);
        // What does not vary along the scanned axis, register dimensions of other axes, indexes the running values.
        std::set<std::string> others = member.axes;
        others.erase(axis_name);
        const auto other_leaves = register_leaves(others);
        shape.threads ? scan_threads(member, s, shape, definition, terms, result, leaves, other_leaves)
                      : scan_serially(member, s, shape, definition, terms, result, leaves, other_leaves);
        std::vector<Expr> values;
        for (std::size_t i = 0; i < types.size(); ++i) {
            values.push_back(tile::read(result, place, static_cast<int>(i)));
        }
        add_stores(member, values);
    }

    struct ScanShape {
        std::set<std::string> outer, inner;  ///< serial leaves before and after the thread leaf
        const tile::Leaf *threads = nullptr;
    };
    /// The scan runs in the order of the axis: leaves must stand as they count.
    ScanShape scan_shape(const tile::Axis &axis, const Stage &s) const {
        ScanShape shape;
        for (const tile::Leaf &leaf : axis.leaves) {
            if (leaf.level == Level::grid || leaf.level == Level::cluster || (leaf.level == Level::thread && shape.threads)) {
                user_error("kernel {}: stage '{}' scans along '{}', which is spread over blocks; spread it over one group of threads", kernel_.name, s.name(), axis.name);
            }
            if (leaf.level == Level::thread) {
                shape.threads = &leaf;
            } else {
                (shape.threads ? shape.inner : shape.outer).insert(leaf.name);
            }
        }
        std::vector<std::string> order;
        for (const NestLoop &loop : nest_.loops) {
            if (nest_.axes[loop.axis].name == axis.name) {
                order.push_back(nest_.leaf(loop).name);
            }
        }
        std::vector<std::string> counted;
        for (const tile::Leaf &leaf : axis.leaves) {
            if (leaf.level != Level::thread) {
                counted.push_back(leaf.name);
            }
        }
        if (order != counted) {
            user_error("kernel {}: the loops over '{}', along which stage '{}' scans, are not in the order in which they count", kernel_.name, axis.name, s.name());
        }
        return shape;
    }
    void set_combiner(tile::Buffer &buffer, const tile::CombinerDefinition &definition) {
        if (buffer.types.size() > 1) {
            launch_.find_buffer(buffer.name)->combiner = buffer.combiner = definition.name;
        }
    }
    static std::vector<Expr> elements(const tile::Buffer &buffer, const std::vector<Expr> &place) {
        std::vector<Expr> result;
        for (std::size_t i = 0; i < buffer.types.size(); ++i) {
            result.push_back(tile::read(buffer, place, static_cast<int>(i)));
        }
        return result;
    }

    void scan_serially(const Member &member, const Stage &s, const ScanShape &shape, const tile::CombinerDefinition &definition,
                       const std::vector<Expr> &terms, const tile::Buffer &result, const std::vector<const tile::Leaf *> &leaves,
                       const std::vector<const tile::Leaf *> &other_leaves) {
        tile::Buffer running = register_buffer(s.name() + "_running", result.types, other_leaves);
        set_combiner(running, definition);
        const std::vector<Expr> place = place_in(leaves), other_place = place_in(other_leaves);
        Piece piece;
        piece.name = s.name();
        piece.loops = loops_of(member.axes);
        piece.carries = shape.outer;
        piece.keeps_per_iteration = false;
        piece.needs = needs_of(terms);
        piece.begin = [=](const std::set<std::string> &around) {
            return over(other_leaves, around, {tile::Statement{tile::Store{running.name, other_place, definition.identity}}});
        };
        const std::vector<Expr> guards = guards_of(member.axes);
        piece.body = [=] {
            tile::Block step{tile::Statement{tile::Fold{running.name, definition.name, other_place, terms}},
                             tile::Statement{tile::Store{result.name, place, elements(running, other_place)}}};
            return guarded(guards, step);
        };
        piece_of_[result.name] = add_piece(piece);
    }

    void scan_threads(const Member &member, const Stage &s, const ScanShape &shape, const tile::CombinerDefinition &definition,
                      const std::vector<Expr> &terms, const tile::Buffer &result, const std::vector<const tile::Leaf *> &leaves,
                      const std::vector<const tile::Leaf *> &other_leaves) {
        for (const std::string &name : shape.inner) {
            const auto loop = std::find_if(nest_.loops.begin(), nest_.loops.end(), [&](const NestLoop &l) { return nest_.leaf(l).name == name; });
            if (nest_.leaf(*loop).level == Level::loop && !(nest_.leaf(*loop).extent == Extent(1))) {
                user_error("kernel {}: loop '{}', inside of the threads that scan '{}', must be unrolled or vectorized", kernel_.name, name, s.name());
            }
        }
        tile::Buffer prefix = register_buffer(s.name() + "_prefix", result.types, leaves);
        tile::Buffer total = register_buffer(s.name() + "_total", result.types, other_leaves);
        tile::Buffer before = register_buffer(s.name() + "_before", result.types, other_leaves);
        tile::Buffer carry = register_buffer(s.name() + "_carry", result.types, other_leaves);
        for (tile::Buffer *buffer : {&prefix, &total, &before, &carry}) {
            set_combiner(*buffer, definition);
        }
        const std::vector<Expr> place = place_in(leaves), other_place = place_in(other_leaves);
        const std::vector<Expr> guards = guards_of(member.axes);
        Piece local;
        local.name = s.name() + " within a thread";
        local.loops = loops_of(member.axes);
        local.reduces = shape.inner;
        local.needs = needs_of(terms);
        local.begin = [=](const std::set<std::string> &around) {
            return over(other_leaves, around, {tile::Statement{tile::Store{total.name, other_place, definition.identity}}});
        };
        local.body = [=] {
            return guarded(guards, {tile::Statement{tile::Fold{total.name, definition.name, other_place, terms}},
                                    tile::Statement{tile::Store{prefix.name, place, elements(total, other_place)}}});
        };
        const int first = add_piece(local);
        Piece exchange;
        exchange.name = s.name() + " across threads";
        exchange.loops = loops_of(member.axes);
        for (const std::string &inner : shape.inner) {
            exchange.loops.erase(inner);
        }
        exchange.carries = shape.outer;
        exchange.keeps_per_iteration = false;
        exchange.needs = {first};
        exchange.begin = [=](const std::set<std::string> &around) {
            return over(other_leaves, around, {tile::Statement{tile::Store{carry.name, other_place, definition.identity}}});
        };
        const tile::Combine::Group group{static_cast<int>(shape.threads->extent.value()), static_cast<int>(shape.threads->unit_stride.value())};
        const std::string shared = exchange_buffer(total, {group});
        exchange.body = [=] { return tile::Block{tile::Statement{tile::ScanThreads{total.name, before.name, carry.name, definition.name, other_place, group, shared}}}; };
        const int second = add_piece(exchange);
        Piece value;
        value.name = s.name();
        value.loops = loops_of(member.axes);
        value.needs = {first, second};
        value.keeps_per_iteration = false;
        Substitution both;
        const std::vector<Expr> left = elements(before, other_place), right = elements(prefix, place);
        std::vector<Expr> combined;
        for (std::size_t i = 0; i < left.size(); ++i) {
            both[definition.left[i]] = left[i];
            both[definition.right[i]] = right[i];
        }
        for (const Expr &e : definition.result) {
            combined.push_back(substitute_variables(e, both));
        }
        value.body = [=] { return guarded(guards, {tile::Statement{tile::Store{result.name, place, combined}}}); };
        piece_of_[result.name] = add_piece(value);
    }

    // ---- Tiles in shared memory ----
    void add_tile(const Member &member) {
        user_error("kernel {}: stage '{}' asks for shared memory, which its nest does not offer", kernel_.name, stage(member.stage).name());
    }

    const Kernel &kernel_;
    const Placement &placement_;
    const Nest &nest_;
    Storage &storage_;
    const ScheduledKernel &schedule_;
    const GpuFacts &facts_;
    tile::Launch launch_;
    StageValues values_;
    std::vector<Piece> pieces_;
    std::map<std::string, int> piece_of_;
    std::set<std::string> names_;
    std::vector<std::pair<Expr, Expr>> operands_;  ///< parts of terms, and the registers that hold them
    std::set<std::string> staged_;  ///< copies that the schedule puts into shared memory, as they were made
    std::set<std::string> split_;  ///< values of which a block has only its part
    std::vector<tile::Launch> finishing_;
};

}  // namespace

std::vector<tile::Launch> lower_nest(const Kernel &kernel, const Placement &placement, int nest, Storage &storage, const ScheduledKernel &schedule,
                                     const GpuFacts &facts) {
    return NestLowering(kernel, placement, nest, storage, schedule, facts).run();
}

}  // namespace tilewright
