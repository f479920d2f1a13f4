#include "lowering/nests/segments.h"

#include <algorithm>
#include <map>

#include "lowering/passes/append.h"

namespace tilewright {
namespace {

class Arranger {
public:
    Arranger(const std::vector<Piece> &pieces, const std::vector<SegmentLoop> &loops) : pieces_(pieces), loops_(loops) {}

    /// `open`: pieces whose begin has been written around these loops.
    tile::Block nest(std::size_t depth, const std::vector<int> &group, const std::set<int> &open,
                     const std::set<std::string> &around) const {
        while (depth < loops_.size() && std::none_of(group.begin(), group.end(), [&](int p) { return uses(p, depth); })) {
            ++depth;
        }
        tile::Block block;
        if (depth == loops_.size()) {
            for (int p : group) {
                const bool opened = open.count(p) > 0;
                append(block, opened || !pieces_[p].begin ? tile::Block() : pieces_[p].begin(around));
                append(block, pieces_[p].body ? pieces_[p].body() : tile::Block());
                append(block, opened || !pieces_[p].end ? tile::Block() : pieces_[p].end(around));
            }
            return block;
        }
        for (const auto &[time, members] : by_time(depth, group)) {
            append(block, time % 2 == 0 ? nest(depth + 1, members, open, around) : loop(depth, members, open, around));
        }
        return block;
    }

private:
    bool uses(int piece, std::size_t depth) const { return pieces_[piece].loops.count(loops_[depth].name) > 0; }
    bool reduces(int piece, std::size_t depth) const { return pieces_[piece].reduces.count(loops_[depth].name) > 0; }

    /// Runs of the loop have odd times, what stands between them even ones.
    std::map<int, std::vector<int>> by_time(std::size_t depth, const std::vector<int> &group) const {
        std::map<int, int> time;
        for (int p : group) {
            int t = uses(p, depth) ? 1 : 0;
            for (int d : pieces_[p].needs) {
                if (auto found = time.find(d); found != time.end()) {
                    const bool own = uses(p, depth), theirs = uses(d, depth);
                    t = std::max(t, found->second + (own == theirs ? (own && reduces(d, depth) ? 2 : 0) : 1));
                }
            }
            time[p] = t;
        }
        std::map<int, std::set<int>> runs;
        for (auto p = group.rbegin(); p != group.rend(); ++p) {
            runs[time[*p]].insert(*p);
        }
        for (auto &[t, members] : runs) {
            add_recomputed(depth, t, time, members);
        }
        std::map<int, std::vector<int>> result;
        for (const auto &[t, members] : runs) {
            for (int p : group) {
                if (members.count(p)) {
                    result[t].push_back(p);
                }
            }
        }
        return result;
    }

    /// Whether a value is gone once the loops from `depth` on are over: a serial one, which the piece does not reduce, has overwritten it.
    bool is_overwritten(int piece, std::size_t depth) const {
        for (std::size_t d = depth; d < loops_.size(); ++d) {
            const bool iterates = loops_[d].level == tile::Level::loop && (d == depth || !(loops_[d].extent == Extent(1)));
            if (iterates && uses(piece, d) && !reduces(piece, d)) {
                return true;
            }
        }
        return false;
    }

    /// Values of an earlier run that are gone: the later run, at `t`, computes them again.
    void add_recomputed(std::size_t depth, int t, const std::map<int, int> &time, std::set<int> &members) const {
        std::vector<int> pending(members.begin(), members.end());
        while (!pending.empty()) {
            const int p = pending.back();
            pending.pop_back();
            for (int d : pieces_[p].needs) {
                const bool stands_here = t % 2 == 1 || !uses(d, depth);
                if (time.count(d) && stands_here && is_overwritten(d, depth) && !reduces(d, depth) && pieces_[d].keeps_per_iteration &&
                    members.insert(d).second) {
                    pending.push_back(d);
                }
            }
        }
    }

    tile::Block loop(std::size_t depth, const std::vector<int> &group, const std::set<int> &open,
                     const std::set<std::string> &around) const {
        tile::Block block;
        std::set<int> inside = open;
        std::vector<int> opened;
        for (int p : group) {
            const bool begins = reduces(p, depth) || pieces_[p].carries.count(loops_[depth].name) > 0;
            if (begins && inside.insert(p).second) {
                opened.push_back(p);
                append(block, pieces_[p].begin ? pieces_[p].begin(around) : tile::Block());
            }
        }
        std::set<std::string> within = around;
        within.insert(loops_[depth].name);
        tile::For statement{loops_[depth].name, loops_[depth].extent, loops_[depth].level, nest(depth + 1, group, inside, within)};
        block.push_back({statement});
        for (int p : opened) {
            append(block, pieces_[p].end ? pieces_[p].end(around) : tile::Block());
        }
        return block;
    }

    const std::vector<Piece> &pieces_;
    const std::vector<SegmentLoop> &loops_;
};

}  // namespace

tile::Block arrange(const std::vector<Piece> &pieces, const std::vector<SegmentLoop> &loops) {
    std::vector<int> all(pieces.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<int>(i);
    }
    return Arranger(pieces, loops).nest(0, all, {}, {});
}

}  // namespace tilewright
