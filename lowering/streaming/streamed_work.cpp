#include "lowering/streaming/streamed_work.h"

#include "lowering/nests/invoke.h"
#include "lowering/passes/append.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

namespace {}  // namespace

StreamedWork::StreamedWork(StreamingLaunch &stream) : stream_(stream), masks_(stream.form.masks) {
    find_range();
    stream_.takes_from_counter = stream_.persistent && range_.is_bounded();
    if (stream_.persistent) {
        stream_.add_registers("passed", Halide::Int(32), {1});
    }
    if (stream_.takes_from_counter) {
        tile::Buffer counter = stream_.storage.scratch("next_piece", Halide::Int(32), {1}, true);
        counter_ = stream_.used(counter).name;
        stream_.add_shared("pieces", Halide::Int(32), {2});
    }
}

void StreamedWork::find_range() {
    const Expr streamed = tile::variable(stream_.form.streamed), extent = to_halide(stream_.form.streamed_extent);
    Expr any;
    for (const Expr &mask : masks_) {
        any = any.defined() ? any && mask : mask;
    }
    const auto rows = stream_.rows_between(stream_.first_row(), stream_.existing_rows());
    range_ = any.defined() ? possible_range(any, stream_.form.streamed, rows) : PossibleRange{};
    if (!(mod(stream_.form.streamed_extent, stream_.keys) == Extent(0))) {
        masks_.push_back(streamed < extent);
    }
    const auto narrow = [&](const Expr &e) {
        return Halide::cast<int>(Halide::clamp(e, Halide::cast<std::int64_t>(0), Halide::cast<std::int64_t>(extent) - 1));
    };
    first_tile_ = range_.first.defined() ? stream_.bound(narrow(range_.first)) / stream_.keys : Expr(0);
    const Expr end = range_.last.defined() ? stream_.bound(narrow(range_.last)) / stream_.keys + 1 : to_halide(stream_.key_tiles);
    if (stream_.parts > 1) {
        if (range_.is_bounded()) {
            stream_.refuse("blocks share keys where rows see all of them, and its masks leave some out", "remove split_blocks");
        }
        const Extent most = ceil_div(stream_.key_tiles, stream_.parts);
        first_tile_ = tile::variable("part") * to_halide(most);
        tile_count_ = Halide::min(end - tile::variable("first_tile"), to_halide(most));
        return;
    }
    tile_count_ = range_.is_bounded() ? Halide::max(end - tile::variable("first_tile"), 1) : end;
}

/// Groups of stream_.raster planes side by side: their blocks share keys and values in the L2 cache, the longest first.
tile::Block StreamedWork::place() const {
    tile::Block block;
    const auto let = [&](const std::string &name, const Expr &value) { block.push_back({tile::Let{name, value}}); };
    const bool shares = stream_.parts > 1 && stream_.role == StreamingLaunch::Role::multiplies;
    const Expr piece = shares ? tile::variable("piece") / stream_.parts : tile::variable("piece"),
               in_stripe = tile::variable("place_in_stripe"), stripe = tile::variable("block_stripe");
    const Expr per_stripe = to_halide(stream_.row_tiles) * stream_.raster, width = tile::variable("stripe_planes");
    if (shares) {
        let("part", tile::variable("piece") % stream_.parts);
    }
    let("block_stripe", piece / per_stripe * stream_.raster);
    let("place_in_stripe", piece % per_stripe);
    let("stripe_planes", Halide::min(to_halide(stream_.planes) - stripe, stream_.raster));
    const Expr row = in_stripe / width;
    let("m_tile", range_.last.defined() ? to_halide(stream_.row_tiles) - 1 - row : row);
    let("block_plane", stripe + in_stripe % width);
    Expr plane = tile::variable("block_plane");
    for (auto i = stream_.batch.rbegin(); i != stream_.batch.rend(); ++i) {
        const Expr extent = to_halide(stream_.plane_extent(*i));
        let(stream_.axis_name(*i) + "_tile", i + 1 == stream_.batch.rend() ? plane : plane % extent);
        plane = plane / extent;
    }
    if (stream_.role == StreamingLaunch::Role::multiplies) {
        let("first_tile", first_tile_);
        let("tile_count", tile_count_);
    }
    return block;
}

Expr StreamedWork::round() const { return stream_.persistent ? tile::variable("round") : Expr(0); }
Expr StreamedWork::iteration(const Expr &step) const { return stream_.persistent ? tile::variable("passed_before") + step : step; }
Expr StreamedWork::exists() const { return tile::variable("piece") < to_halide(stream_.pieces); }
Expr StreamedWork::announced() const { return stream_.kept("pieces", {round() % 2}); }

tile::Block StreamedWork::piece(tile::Block body) const {
    tile::Block block = place();
    if (stream_.persistent) {
        block.push_back({tile::Let{"passed_before", stream_.kept("passed", {0})}});
    }
    append(block, std::move(body));
    if (stream_.persistent) {
        block.push_back({tile::Store{"passed", {0}, {iteration(tile::variable("tile_count"))}}});
    }
    return block;
}

tile::Block StreamedWork::alone(tile::Block body) const {
    tile::Block block{{tile::Let{"piece", tile::variable("block.rank")}}};
    append(block, place());
    append(block, std::move(body));
    return block;
}

tile::Block StreamedWork::rounds(const Extent &count, tile::Block body) const {
    tile::For loop{"round", count, Level::loop, std::move(body)};
    loop.rolled = true;
    return {tile::Statement{tile::Store{"passed", {0}, {Expr(0)}}}, tile::Statement{std::move(loop)}};
}

tile::Block StreamedWork::produced(const std::function<tile::Block(const Expr &)> &announce, tile::Block body) const {
    const Expr rank = tile::variable("block.rank");
    if (!stream_.persistent) {
        tile::Block block{{tile::Let{"piece", rank}}}, fetched = announce(Halide::Internal::const_true());
        append(fetched, std::move(body));
        append(block, piece(std::move(fetched)));
        return block;
    }
    const Expr blocks = to_halide(stream_.launch.blocks);
    if (!stream_.takes_from_counter) {
        tile::Block fetched = announce(Halide::Internal::const_true());
        append(fetched, std::move(body));
        return rounds(ceil_div(stream_.pieces, stream_.launch.blocks), {tile::Statement{tile::Let{"piece", round() * blocks + rank}},
                                                                        tile::Statement{tile::If{exists(), piece(std::move(fetched))}}});
    }
    tile::Block block{
        invoke("take_piece", {}, {buffer("pieces", {round() % 2}), buffer(counter_, {0}), scalar(round()), scalar(rank), scalar(blocks)},
               {"pieces", counter_}),
        tile::Statement{tile::Let{"piece", announced()}}};
    append(block, announce(exists()));
    block.push_back({tile::If{!exists(), {tile::Statement{tile::Exit{}}}}});
    append(block, piece(std::move(body)));
    return rounds(stream_.pieces + Extent(1), std::move(block));
}

tile::Block StreamedWork::consumed(tile::Block wait, tile::Block body, tile::Block leave) const {
    const Expr rank = tile::variable("block.rank");
    tile::Block block;
    if (stream_.takes_from_counter) {
        append(block, std::move(wait));
        block.push_back({tile::Let{"piece", announced()}});
        tile::Block last = leave;
        last.push_back({tile::Exit{}});
        block.push_back({tile::If{!exists(), std::move(last)}});
        append(block, piece(std::move(body)));
        return rounds(stream_.pieces + Extent(1), std::move(block));
    }
    append(wait, std::move(body));
    block.push_back({tile::Let{"piece", stream_.persistent ? round() * to_halide(stream_.launch.blocks) + rank : rank}});
    if (stream_.persistent) {
        block.push_back({tile::If{exists(), piece(std::move(wait))}});
        block = rounds(ceil_div(stream_.pieces, stream_.launch.blocks), std::move(block));
    } else {
        append(block, piece(std::move(wait)));
    }
    append(block, std::move(leave));
    return block;
}

}  // namespace tilewright
