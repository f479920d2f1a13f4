#include <algorithm>
#include <memory>
#include <set>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/passes.h"
#include "lowering/passes/surroundings.h"
#include "lowering/tile_ir/dense_buffer.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

constexpr std::int64_t most_held = 32;  // elements of a thread

/// A read of one element inside of unrolled loops and guards.
struct Site {
    std::vector<const Statement *> around;  ///< outermost first
    Expr read;
    std::size_t statement = 0;  ///< of the block
};

class HoldElements {
public:
    explicit HoldElements(Launch &launch) : launch_(launch) {
        visit_statements(launch.body, [&](const Statement &s) {
            for (const std::string &name : written_buffers(s)) {
                written_.insert(name);
            }
        });
    }

    void run(Block &block) {
        while (hold_one(block)) {
        }
        for (Statement &s : block) {
            auto *loop = s.as<For>();
            if (loop && loop->level == Level::loop) {
                run(loop->body);
            }
        }
    }

private:
    /// The first read that several statements of the block share.
    bool hold_one(Block &block) {
        std::vector<Site> sites;
        for (std::size_t i = 0; i < block.size(); ++i) {
            std::vector<const Statement *> around;
            collect(block[i], i, around, sites);
        }
        for (const Site &site : sites) {
            const bool shared = std::any_of(sites.begin(), sites.end(),
                                            [&](const Site &other) { return other.statement != site.statement && same(site, other); });
            if (shared && count(site) + held_ <= most_held) {
                hold(block, site);
                return true;
            }
        }
        return false;
    }
    static bool same(const Site &a, const Site &b) { return hi::graph_equal(a.read, b.read) && same_surroundings(a.around, b.around); }

    static std::int64_t count(const Site &site) {
        std::int64_t result = 1;
        for (const Statement *s : site.around) {
            result *= s->as<For>() ? s->as<For>()->extent.value() : 1;
        }
        return result;
    }

    void collect(const Statement &s, std::size_t statement, std::vector<const Statement *> &around, std::vector<Site> &sites) const {
        const auto *loop = s.as<For>();
        const auto *guard = s.as<If>();
        if (loop || guard) {
            if (loop ? loop->level == Level::unroll && loop->extent.is_constant() : !contains_read(guard->condition)) {
                around.push_back(&s);
                for (const Statement &inner : *body_of(s)) {
                    collect(inner, statement, around, sites);
                }
                around.pop_back();
            }
            return;
        }
        const bool unrolled = std::any_of(around.begin(), around.end(), [](const Statement *a) { return a->as<For>() != nullptr; });
        if (!unrolled || !(s.as<Store>() || s.as<tile::Fold>())) {
            return;
        }
        for (const Expr &e : expressions_of(s)) {
            visit_reads(e, [&](const hi::Call *read) {
                const Buffer *buffer = launch_.find_buffer(read->name);
                const bool plain =
                    std::none_of(read->args.begin(), read->args.end(), [](const Expr &index) { return contains_read(index); });
                if (buffer && buffer->memory == Memory::global && buffer->types.size() == 1 && plain && !written_.count(read->name)) {
                    sites.push_back({around, Expr(read), statement});
                }
            });
        }
    }

    class Replace : public hi::IRGraphMutator {
    public:
        Replace(Expr read, Expr held) : read_(std::move(read)), held_(std::move(held)) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override { return hi::graph_equal(Expr(op), read_) ? held_ : hi::IRGraphMutator::visit(op); }

    private:
        Expr read_, held_;
    };

    void hold(Block &block, const Site &site) {
        const std::string source = site.read.as<hi::Call>()->name;
        std::string name = source + "_held";
        for (int i = 2; launch_.find_buffer(name); ++i) {
            name = source + "_held" + std::to_string(i);
        }
        std::vector<Extent> extents;
        std::vector<Expr> place;
        for (const Statement *s : site.around) {
            if (const auto *loop = s->as<For>()) {
                extents.push_back(loop->extent);
                place.push_back(loop->extent == Extent(1) ? Expr(0) : tile::variable(loop->variable));
            }
        }
        const Buffer held = dense_buffer(name, launch_.find_buffer(source)->types, Memory::registers, extents);
        launch_.buffers.push_back(held);
        held_ += count(site);
        Statement load = wrapped(Statement{Store{held.name, place, {site.read}}}, site.around);
        Replace replace(site.read, tile::read(held, place));
        const Site wanted{copies(site.around), site.read, site.statement};
        std::vector<const Statement *> around;
        for (Statement &s : block) {
            rewrite(s, wanted, replace, around);
        }
        block.insert(block.begin() + static_cast<std::ptrdiff_t>(site.statement), std::move(load));
    }
    /// The loops and guards by themselves, for what they hold is about to change.
    std::vector<const Statement *> copies(const std::vector<const Statement *> &around) {
        std::vector<const Statement *> result;
        for (const Statement *s : around) {
            kept_.push_back(std::make_unique<Statement>(*s));
            result.push_back(kept_.back().get());
        }
        return result;
    }

    void rewrite(Statement &s, const Site &site, Replace &replace, std::vector<const Statement *> &around) const {
        if (Block *body = body_of(s)) {
            around.push_back(&s);
            for (Statement &inner : *body) {
                rewrite(inner, site, replace, around);
            }
            around.pop_back();
        } else if (same_surroundings(site.around, around)) {
            auto *store = s.as<Store>();
            auto *fold = s.as<tile::Fold>();
            for (std::vector<Expr> *list : {store ? &store->values : nullptr, fold ? &fold->terms : nullptr}) {
                for (std::size_t i = 0; list && i < list->size(); ++i) {
                    (*list)[i] = replace.mutate((*list)[i]);
                }
            }
        }
    }

    Launch &launch_;
    std::set<std::string> written_;
    std::vector<std::unique_ptr<Statement>> kept_;
    std::int64_t held_ = 0;
};

}  // namespace

void hold_elements(Launch &launch) { HoldElements(launch).run(launch.body); }

}  // namespace tilewright
