#include <algorithm>

#include "dsl/schedule/builder.h"
#include "lowering/cuda_schedules/register_tiles.h"

namespace tilewright {

namespace {

/// Directives of one product, with its arguments gathered into planes, rows and columns.
class ProductDirectives {
public:
    ProductDirectives(const RegisterProduct &product, Directives &into) : product_(product), into_(into), stage_(into, product.stage) {
        std::vector<std::string> order;
        for (const auto *arguments : {&product.planes, &product.rows, &product.columns}) {
            for (int i : *arguments) {
                order.push_back("d" + std::to_string(i));
            }
        }
        reorder(order);
        planes_ = fuse(product.planes, "planes");
        rows_ = fuse(product.rows, "rows");
        columns_ = fuse(product.columns, "columns");
    }

    void tile(const RegisterTile &tile) {
        std::vector<std::string> blocks, threads, registers;
        const bool by_columns = share(columns_, "column", tile.column_threads, tile.columns, threads, registers, blocks);
        share(rows_, "row", tile.row_threads, tile.rows, threads, registers, blocks);
        std::vector<std::string> terms = walk(tile.at_once, tile.parts);
        if (by_columns) {
            stage_.vectorize("column_lane");
        }
        sum_apart(terms);
        finish(blocks, threads, registers, terms);
        if (tile.staged) {
            for (const std::string &tensor : {product_.row_tensor, product_.column_tensor}) {
                StageSchedule(into_, tensor).in(product_.stage).compute_at(product_.stage, "step").store_in("shared");
            }
        }
        share_pass(blocks, tile.parts);
    }

    void share_sums(const SharedSums &sums) {
        constexpr std::int64_t most_unrolled = 32;
        stage_.split(columns_, "column_block", "column_thread", sums.columns);
        std::vector<std::string> terms;
        std::int64_t unrolled = 1;
        for (std::size_t i = product_.variables.size(); i-- > 0;) {
            std::string loop = product_.variables[i];
            std::int64_t count = product_.terms[i].value();
            if (i == sums.variable && sums.threads > 1) {
                stage_.split(loop, "step", "share", sums.threads);
                loop = "step";
                count = (count + sums.threads - 1) / sums.threads;
            }
            if (unrolled * count <= most_unrolled) {
                stage_.unroll(loop);
                unrolled *= count;
                terms.push_back(loop);
            } else if (i == sums.variable && product_.variables.size() == 1) {
                stage_.split(loop, "round", "at_once", 8).unroll("at_once");
                terms.insert(terms.begin(), "round");
                terms.push_back("at_once");
            } else {
                terms.insert(terms.begin(), loop);
            }
        }
        std::vector<std::string> threads{"column_thread"}, blocks{"column_block"};
        if (sums.threads > 1) {
            threads.insert(sums.along_k ? threads.begin() : threads.end(), "share");
            stage_.reduce_across(sums.along_k && sums.threads == 32 ? "warp" : "block");
        }
        if (!rows_.empty()) {
            blocks.push_back(rows_);
        }
        finish(blocks, threads, {}, terms);
        share_pass(blocks, 1);
    }

    void stream(const ProductStream &tile, bool large_is_columns, std::int64_t few, const SymbolRanges &symbols) {
        const std::string large = large_is_columns ? columns_ : rows_, small = large_is_columns ? rows_ : columns_;
        const int width = std::max(vector_bytes / (large_is_columns ? product_.column_bytes : product_.row_bytes), 1);
        const std::string &variable = product_.variables[0];
        std::vector<std::string> blocks, threads, registers, terms;
        if (!small.empty() && few > 1) {
            stage_.split(small, "few_block", "few", few).unroll("few");
            registers.push_back("few");
        }
        if (tile.along_k) {
            const int warps = std::max(256 / tile.lanes, 1);
            stage_.split(large, "block", "in_block", static_cast<std::int64_t>(warps) * tile.rows)
                .split("in_block", "warp", "row", tile.rows)
                .unroll("row");
            stage_.split(variable, "vectors", "lane", width)
                .unroll("lane")
                .split("vectors", "steps", "thread", tile.lanes)
                .split("steps", "step", "at_once", tile.at_once)
                .unroll("at_once");
            threads = {"thread", "warp"};
            registers.insert(registers.end(), {"row", "at_once", "lane"});
        } else {
            stage_.split(large, "vectors", "lane", width).vectorize("lane").split("vectors", "block", "thread", 32);
            stage_.split(variable, "steps", "share", tile.lanes).split("steps", "step", "at_once", tile.at_once).unroll("at_once");
            threads = {"thread", "share"};
            registers.insert(registers.end(), {"at_once", "lane"});
        }
        blocks = {"block"};
        if (!small.empty()) {
            blocks.push_back(few > 1 ? "few_block" : small);
        }
        stage_.reduce_across(tile.along_k && tile.lanes <= 32 ? "warp" : "block");
        if (tile.parts > 1) {
            stage_.split_blocks("step", tile.parts);
        }
        if (tile.lanes * tile.at_once * (tile.along_k ? width : 1) < most_places(product_.k, symbols) / most_steps) {
            sum_apart({"step", "at_once"});
        }
        finish(blocks, threads, registers, {"step"});
        share_pass(blocks, tile.parts);
    }

private:
    static constexpr std::int64_t most_steps = 16;
    static constexpr int least_run = 16, run = 64;  // terms that are summed apart

    /// Of float32: one sum of all terms rounds by its size each time.
    void sum_apart(const std::vector<std::string> &terms) {
        if (product_.sums_apart && terms.size() > 1) {
            stage_.sum_apart();
        }
    }
    void reorder(const std::vector<std::string> &outermost_first) {
        if (outermost_first.size() < 2) {
            return;
        }
        Directive directive{product_.stage, "reorder", {}, {}, {}};
        directive.arguments.assign(outermost_first.rbegin(), outermost_first.rend());
        into_.push_back(directive);
    }
    std::string fuse(const std::vector<int> &arguments, const std::string &name) {
        if (arguments.empty()) {
            return "";
        }
        std::string fused = "d" + std::to_string(arguments[0]);
        for (std::size_t i = 1; i < arguments.size(); ++i) {
            const std::string next = i + 1 == arguments.size() ? name : name + std::to_string(i);
            stage_.fuse(fused, "d" + std::to_string(arguments[i]), next);
            fused = next;
        }
        return fused;
    }

    /// An axis over blocks, groups of 4 neighbouring elements a thread, and several of those groups apart.
    bool share(const std::string &axis, const std::string &name, int threads_wanted, int sums, std::vector<std::string> &threads,
               std::vector<std::string> &registers, std::vector<std::string> &blocks) {
        if (axis.empty()) {
            return false;
        }
        constexpr int group = 4;
        stage_.split(axis, name + "_block", name + "_in_block", static_cast<std::int64_t>(threads_wanted) * sums);
        std::string rest = name + "_in_block";
        if (sums > group) {
            stage_.split(rest, name + "_group", name + "_rest", static_cast<std::int64_t>(threads_wanted) * group).unroll(name + "_group");
            registers.push_back(name + "_group");
            rest = name + "_rest";
        }
        stage_.split(rest, name + "_thread", name + "_lane", group);
        if (name != "column") {
            stage_.unroll(name + "_lane");
        }
        registers.push_back(name + "_lane");
        threads.push_back(name + "_thread");
        blocks.push_back(name + "_block");
        return true;
    }

    /// Loops over the terms, outermost first.
    std::vector<std::string> walk(int at_once, int parts) {
        std::vector<std::string> terms(product_.variables.rbegin(), product_.variables.rend());
        const std::string inner = terms.back();
        if (product_.variables.size() == 1) {
            const bool in_runs = product_.sums_apart && at_once < least_run;
            if (in_runs) {
                stage_.split(inner, "run", "in_run", run);
            }
            stage_.split(in_runs ? "in_run" : inner, "step", "at_once", at_once).unroll("at_once");
            terms = in_runs ? std::vector<std::string>{"run", "step", "at_once"} : std::vector<std::string>{"step", "at_once"};
            if (parts > 1) {
                stage_.split_blocks(terms.front(), parts);
            }
        } else if (product_.terms[0].is_constant() && product_.terms[0].value() <= 4) {
            stage_.unroll(inner);
        }
        return terms;
    }

    void finish(const std::vector<std::string> &blocks, const std::vector<std::string> &threads, const std::vector<std::string> &registers,
                const std::vector<std::string> &terms) {
        std::vector<std::string> order;
        if (!planes_.empty()) {
            order.push_back(planes_);
        }
        order.insert(order.end(), blocks.rbegin(), blocks.rend());
        order.insert(order.end(), threads.rbegin(), threads.rend());
        order.insert(order.end(), terms.begin(), terms.end());
        for (const std::string &loop : registers) {
            if (std::find(order.begin(), order.end(), loop) == order.end()) {
                order.push_back(loop);
            }
        }
        reorder(order);
        bind("gpu_blocks", blocks, planes_);
        bind("gpu_threads", threads, "");
    }
    void bind(const char *directive, std::vector<std::string> loops, const std::string &last) {
        if (!last.empty()) {
            loops.push_back(last);
        }
        Directive d{product_.stage, directive, {}, {}, {}};
        d.arguments.assign(loops.begin(), loops.end());
        into_.push_back(d);
    }
    void share_pass(const std::vector<std::string> &blocks, int parts) {
        for (const std::string &output : parts > 1 ? std::vector<std::string>() : product_.outputs) {
            StageSchedule(into_, output).compute_with(product_.stage, blocks.front());
        }
    }

    const RegisterProduct &product_;
    Directives &into_;
    StageSchedule stage_;
    std::string planes_, rows_, columns_;
};

}  // namespace

void schedule_register_tile(const RegisterProduct &product, const RegisterTile &tile, Directives &into) {
    ProductDirectives(product, into).tile(tile);
}

void schedule_shared_sums(const RegisterProduct &product, const SharedSums &sums, Directives &into) {
    ProductDirectives(product, into).share_sums(sums);
}

void schedule_stream(const RegisterProduct &product, const ProductStream &tile, const SymbolRanges &symbols, Directives &into) {
    const std::int64_t m = most_places(product.m, symbols), n = most_places(product.n, symbols);
    ProductDirectives(product, into).stream(tile, n >= m, std::min(m, n), symbols);
}

}  // namespace tilewright