#include "lowering/passes/streamed_parts.h"

#include "lowering/passes/invoke.h"
#include "lowering/passes/streamed_output.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

StreamedParts::StreamedParts(StreamingLaunch &stream) : stream_(stream) {
    const Extent rows = stream.existing_rows();
    sums_ = stream.storage.scratch("part_sums", Halide::Float(32), {stream.pieces, rows, stream.columns});
    rows_ = stream.storage.scratch("part_rows", Halide::Float(32), {stream.pieces, rows, 2});
}

tile::Block StreamedParts::store() {
    const Expr piece = tile::variable("piece"), half = tile::variable("m_half"), group = tile::variable("n_group"), lane = tile::variable("n_lane");
    const Expr row = stream_.row_in_tile(), column = group * StreamingLaunch::group_columns + tile::variable("n_block") * 8 + lane;
    tile::Block block = over_sums(stream_, only_existing_rows(stream_, {{tile::Store{stream_.used(sums_).name, {piece, row, column},
                                                                                    {stream_.kept("sums", {0, 0, group, half, lane})}}}}));
    const std::string &name = stream_.used(rows_).name;
    tile::Block rows = only_existing_rows(stream_, {{tile::Store{name, {piece, row, 0}, {stream_.kept("maximum", {half})}}},
                                                    {tile::Store{name, {piece, row, 1}, {stream_.kept("total", {half})}}}});
    block.push_back({tile::If{tile::variable("thread.rank") % 4 == 0, {{tile::For{"m_half", 2, Level::unroll, std::move(rows)}}}}});
    return block;
}

tile::Block StreamedParts::merge(StreamingLaunch &stream) const {
    const std::string sums = stream.used(sums_).name, rows = stream.used(rows_).name;
    tile::Block part{invoke("merge_part", {std::to_string(stream.existing_rows()), std::to_string(stream.columns)},
                            {buffer("sums"), buffer("maximum"), buffer("total"), buffer(sums), buffer(rows),
                             scalar(tile::variable("piece") * stream.parts + tile::variable("part")), scalar(stream.exponent_scale())},
                            {"sums", "maximum", "total"})};
    tile::Block block{invoke("stream_begin", {}, {buffer("sums"), buffer("maximum"), buffer("total")}, {"sums", "maximum", "total"})};
    block.push_back({tile::For{"part", stream.parts, Level::loop, std::move(part)}});
    return block;
}

}  // namespace tilewright
