#include "lowering/streaming/streamed_parts.h"

#include "dsl/error.h"
#include "lowering/nests/invoke.h"
#include "lowering/passes/append.h"
#include "lowering/streaming/streamed_output.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

StreamedParts::StreamedParts(StreamingLaunch &stream) : stream_(stream) {
    const Extent rows = stream.existing_rows();
    if (!stream.in_cluster) {
        sums_ = stream.storage.scratch("part_sums", Halide::Float(32), {stream.pieces, rows, stream.columns});
        rows_ = stream.storage.scratch("part_rows", Halide::Float(32), {stream.pieces, rows, 2});
        return;
    }
    if (stream.existing_rows() * stream.columns * 4 > stream.stages * stream.key.bytes()) {
        stream.refuse(fmt::format("its {} rows of {} sums do not fit where keys lay", stream.existing_rows(), stream.columns),
                      "give pipeline more stages, or remove cluster");
    }
    stream.add_shared("part_sums", Halide::Float(32), {1, rows, stream.columns});
    stream.launch.buffers.back().overlays = "key_tile";
    sums_ = stream.launch.buffers.back();
    stream.add_shared("part_rows", Halide::Float(32), {1, rows, 2});
    stream.launch.buffers.back().alignment = 8;
    rows_ = stream.launch.buffers.back();
}

tile::Block StreamedParts::store() {
    const Expr piece = stream_.in_cluster ? Expr(0) : tile::variable("piece"), half = tile::variable("m_half"),
               group = tile::variable("n_group"), lane = tile::variable("n_lane");
    const Expr row = stream_.row_in_tile(), column = group * StreamingLaunch::group_columns + tile::variable("n_block") * 8 + lane;
    const auto name = [&](const tile::Buffer &buffer) { return stream_.in_cluster ? buffer.name : stream_.used(buffer).name; };
    // Where the tile has room for all rows, what lies beyond the last is stored with them: who merges reads whole tiles.
    const auto guarded = [&](tile::Block body) { return stream_.form.group > 0 ? only_existing_rows(stream_, std::move(body)) : body; };
    tile::Block block =
        over_sums(stream_, guarded({{tile::Store{name(sums_), {piece, row, column}, {stream_.kept("sums", {0, 0, group, half, lane})}}}}));
    tile::Block rows = guarded({{tile::Store{name(rows_), {piece, row, 0}, {stream_.kept("maximum", {half})}}},
                                {tile::Store{name(rows_), {piece, row, 1}, {stream_.kept("total", {half})}}}});
    block.push_back({tile::If{tile::variable("thread.rank") % 4 == 0, {{tile::For{"m_half", 2, Level::unroll, std::move(rows)}}}}});
    return block;
}

tile::Block StreamedParts::finish() {
    if (!stream_.in_cluster) {
        return store();
    }
    tile::Block block{invoke("stream_share", {std::to_string(stream_.warpgroups)}, {})};
    append(block, store());
    block.push_back(invoke("sync_cluster", {}, {}, {"part_sums", "part_rows"}));
    tile::For others{"other",
                     stream_.parts - 1,
                     Level::loop,
                     {merge_part(stream_, "merge_peer", "part_sums", "part_rows", tile::variable("other") + 1)}};
    block.push_back({tile::If{is_first(), {{std::move(others)}}}});
    return block;
}

tile::Block StreamedParts::leave() const { return stream_.in_cluster ? tile::Block{invoke("sync_cluster", {}, {})} : tile::Block{}; }

tile::Statement StreamedParts::merge_part(StreamingLaunch &stream, const std::string &function, const std::string &sums,
                                          const std::string &rows, const Expr &piece) const {
    return invoke(
        function, {std::to_string(stream.existing_rows()), std::to_string(stream.columns)},
        {buffer("sums"), buffer("maximum"), buffer("total"), buffer(sums), buffer(rows), scalar(piece), scalar(stream.exponent_scale())},
        {"sums", "maximum", "total"});
}

tile::Block StreamedParts::merge(StreamingLaunch &stream) const {
    const std::string sums = stream.used(sums_).name, rows = stream.used(rows_).name;
    tile::Block part{merge_part(stream, "merge_part", sums, rows, tile::variable("piece") * stream.parts + tile::variable("part"))};
    tile::Block block{invoke("stream_begin", {}, {buffer("sums"), buffer("maximum"), buffer("total")}, {"sums", "maximum", "total"})};
    block.push_back({tile::For{"part", stream.parts, Level::loop, std::move(part)}});
    return block;
}

}  // namespace tilewright
