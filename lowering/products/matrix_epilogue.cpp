#include "lowering/products/matrix_epilogue.h"

#include <algorithm>
#include <limits>

#include "dsl/algorithm/expression.h"
#include "lowering/nests/invoke.h"
#include "lowering/products/staged_rows.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

constexpr int chunk_rows = 64;  // rows of a warpgroup's multiply
constexpr int largest_rank = 5;

}  // namespace

MatrixEpilogue::MatrixEpilogue(const Nest &nest, tile::Launch &launch, StageValues &values, std::vector<MatrixResult> results,
                               std::vector<Expr> kept)
    : nest_(nest), launch_(launch), values_(values), kept_(std::move(kept)), direct_(std::move(results)) {}

std::optional<MatrixEpilogue::Staged> MatrixEpilogue::stage(const MatrixResult &result, const FragmentShape &shape) const {
    const bool is_output = result.target.binding == tile::Buffer::Binding::output;
    if (!is_output || result.target.types[0].bits() < 8) {
        return std::nullopt;
    }
    const auto place = match_strided_place(result.target, result.places, nest_);
    const int bytes = result.target.types[0].bytes();
    // A condition beyond an axis's end holds within rows that the copy unit would store.
    if (!place || !(place->stride(shape.columns) == Extent(1)) || nest_.find_axis(shape.rows)->extent == Extent(1) ||
        !nest_.guards.empty()) {
        return stage_lines(result, shape);
    }
    Staged staged{result, *place, {}, result.target.name + "_tile", {shape.columns, shape.rows}, bytes};
    for (const std::string &axis : shape.batch) {
        if (place->strides.count(axis)) {
            staged.coordinates.push_back(axis);
        } else if (!(nest_.find_axis(axis)->extent == Extent(1))) {
            return std::nullopt;
        }
    }
    const auto aligned = [&](const Extent &elements) { return mod(elements * Extent(bytes), staged_piece_bytes) == Extent(0); };
    bool fits = staged.coordinates.size() <= largest_rank && aligned(place->offset + result.target.address_offset);
    for (std::size_t i = 1; i < staged.coordinates.size(); ++i) {
        fits = fits && aligned(place->stride(staged.coordinates[i])) && !(place->stride(staged.coordinates[i]) == Extent(0));
    }
    staged.by_rows = !fits && stores_rows(staged);
    return fits || staged.by_rows ? std::optional(staged) : std::nullopt;
}

std::optional<MatrixEpilogue::Staged> MatrixEpilogue::stage_lines(const MatrixResult &result, const FragmentShape &shape) const {
    const auto lines = match_pixel_lines(result.target, result.places, nest_, shape.rows, shape.columns);
    const bool single = std::all_of(shape.batch.begin(), shape.batch.end(),
                                    [&](const std::string &axis) { return nest_.find_axis(axis)->extent == Extent(1); });
    const int bytes = result.target.types[0].bytes();
    const auto aligned = [&](const Extent &elements) { return mod(elements * Extent(bytes), staged_piece_bytes) == Extent(0); };
    if (!lines || !single || !aligned(lines->pixel_stride) || !aligned(lines->line_stride) || !aligned(result.target.address_offset)) {
        return std::nullopt;
    }
    return Staged{result, {}, lines, result.target.name + "_tile", {}, bytes};
}

/// Whether threads can store rows at any place, numbered by 32-bit integers.
bool MatrixEpilogue::stores_rows(const Staged &staged) const {
    Extent last = staged.place.offset;
    for (const std::string &axis : staged.coordinates) {
        last = last + staged.place.stride(axis) * nest_.find_axis(axis)->extent;
    }
    const std::int64_t most = std::numeric_limits<std::int32_t>::max();
    return staged.bytes <= 4 && mod(staged.result.target.address_offset * Extent(staged.bytes), staged_piece_bytes) == Extent(0) &&
           last.is_constant() && last.value() <= most;
}

/// Eight neighbours move at once where a tensor is read or stored along the columns without the copy unit.
bool MatrixEpilogue::wants_neighbours(const FragmentShape &shape) const {
    const auto half = [](const MatrixResult &r) { return r.target.types[0].bytes() == 2; };
    const bool narrow = std::all_of(direct_.begin(), direct_.end(), half) &&
                        std::all_of(staged_.begin(), staged_.end(), [&](const Staged &s) { return half(s.result); });
    if (shape.parts > 1 || shape.width % 32 != 0 || !narrow) {
        return false;
    }
    const auto runs_along = [&](const tile::Buffer &b, const std::vector<Expr> &places) {
        if (match_pixel_lines(b, places, nest_, shape.rows, shape.columns)) {
            return true;
        }
        const auto place = match_strided_place(b, places, nest_);
        return place && place->stride(shape.columns) == Extent(1) && place->strides.count(shape.rows) > 0;
    };
    bool wants = std::any_of(direct_.begin(), direct_.end(), [&](const MatrixResult &r) { return runs_along(r.target, r.places); });
    const auto look = [&](const Expr &value) {
        visit_reads(value, [&](const hi::Call *call) {
            const tile::Buffer *read = launch_.find_buffer(call->name);
            wants = wants || (read && read->memory == tile::Memory::global && runs_along(*read, call->args));
        });
    };
    std::for_each(direct_.begin(), direct_.end(), [&](const MatrixResult &r) { look(r.value); });
    std::for_each(staged_.begin(), staged_.end(), [&](const Staged &s) { look(s.result.value); });
    std::for_each(kept_.begin(), kept_.end(), look);
    return wants;
}

void MatrixEpilogue::choose(FragmentShape &shape, std::int64_t free_bytes) {
    const std::vector<MatrixResult> results = std::move(direct_);
    direct_.clear();
    int widest = 1;
    for (const MatrixResult &result : results) {
        auto staged = stage(result, shape);
        const std::int64_t needed = staging_bytes(shape.warpgroups, staged && staged->by_rows);
        if (!staged || free_bytes < needed) {
            direct_.push_back(result);
            continue;
        }
        free_bytes -= needed;
        widest = std::max(widest, staged->bytes);
        staged_.push_back(*staged);
    }
    shape.lanes = wants_neighbours(shape) ? 8 : 2;
    shape.strip = shape.own_width();
    if (staged_.empty()) {
        return;
    }
    for (int bytes = staged_row_bytes; bytes >= 32; bytes /= 2) {
        shape.strip = bytes / widest;
        if (shape.own_width() % shape.strip == 0 && shape.strip % (4 * shape.lanes) == 0) {
            break;
        }
    }
    const bool divides = shape.own_width() % shape.strip == 0 && shape.strip % (4 * shape.lanes) == 0;
    shape.strip = divides ? shape.strip : shape.own_width();
    std::erase_if(staged_, [&](const Staged &staged) {
        const bool narrow = !divides || shape.strip * staged.bytes < 32;
        if (narrow) {
            direct_.push_back(staged.result);
        }
        return narrow;
    });
}

std::vector<tile::Leaf> MatrixEpilogue::row_leaves(const FragmentShape &shape) {
    return {{"m_warpgroup", shape.warpgroups, Level::thread, chunk_rows * shape.chunks, 128},
            {"m_chunk", shape.chunks, Level::unroll, chunk_rows, 1},
            {"m_warp", 4, Level::thread, 16, 32},
            {"m_half", 2, Level::unroll, 8, 1},
            {"m_row", 8, Level::thread, 1, 4}};
}
std::vector<tile::Leaf> MatrixEpilogue::column_leaves(const FragmentShape &shape) {
    return {{"n_strip", shape.strips(), Level::unroll, shape.strip, 1},
            {"n_block", shape.blocks(), Level::unroll, 4 * shape.lanes, 1},
            {"n_quad", 4, Level::thread, shape.lanes, 1},
            {"n_lane", shape.lanes, Level::vector, 1, 1}};
}

int MatrixEpilogue::slots(const FragmentShape &shape) const { return shape.chunks * shape.strips() % 2 == 0 ? 2 : 1; }
Expr MatrixEpilogue::slot(const FragmentShape &shape) const {
    return (tile::variable("m_chunk") * shape.strips() + tile::variable("n_strip")) % slots(shape);
}

void MatrixEpilogue::declare(const FragmentShape &shape) {
    for (const MatrixResult &result : direct_) {
        values_.use(result.target);
    }
    for (const Staged &staged : staged_) {
        tile::Buffer tile = tile::dense_buffer(
            staged.staging, staged.result.target.types, tile::Memory::shared,
            {shape.warpgroups, slots(shape), chunk_rows, shape.strip + (staged.by_rows ? staged_piece_bytes / staged.bytes : 0)});
        tile.alignment = 1024;
        tile.ordered = true;
        launch_.buffers.push_back(tile);
        if (staged.by_threads()) {
            values_.use(staged.result.target);
        } else {
            launch_.buffers.push_back(descriptor(staged, shape));
        }
    }
}

/// What the copy unit knows of the tensor.
tile::Buffer MatrixEpilogue::descriptor(const Staged &staged, const FragmentShape &shape) const {
    tile::Buffer map;
    map.name = staged.staging + "_map";
    map.types = staged.result.target.types;
    map.memory = tile::Memory::descriptor;
    map.binding = tile::Buffer::Binding::output;
    map.index = staged.result.target.index;
    map.map.dtype = from_halide(map.types[0]);
    map.map.swizzle_bytes = shape.strip * staged.bytes;
    map.map.written = true;
    for (const std::string &name : staged.coordinates) {
        map.map.sizes.push_back(nest_.find_axis(name)->extent);
        if (name != shape.columns) {
            map.map.byte_strides.push_back(staged.place.stride(name) * Extent(staged.bytes));
        }
        map.map.box.push_back(1);
    }
    map.map.box[0] = static_cast<std::uint32_t>(shape.strip);
    map.map.box[1] = chunk_rows;
    map.map.element_offset = staged.place.offset;
    return map;
}

/// The element of the tensor where a strip's first row begins.
Expr MatrixEpilogue::first_element(const Staged &staged, const FragmentShape &shape) const {
    Expr first = to_halide(staged.place.offset);
    for (const std::string &name : staged.coordinates) {
        first = first + strip_place(name, shape) * to_halide(staged.place.stride(name));
    }
    return simplify_index(first, nest_.ranges);
}
/// Where a strip begins along an axis.
Expr MatrixEpilogue::strip_place(const std::string &name, const FragmentShape &shape) {
    if (name == shape.columns) {
        const Expr tile = tile::variable("n_tile") * shape.width,
                   own = shape.parts > 1 ? tile + tile::variable("k_part") * shape.own_width() : tile;
        return own + tile::variable("n_strip") * shape.strip;
    }
    if (name == shape.rows) {
        return tile::variable("m_tile") * (shape.warpgroups * shape.chunks * chunk_rows) +
               tile::variable("m_warpgroup") * (shape.chunks * chunk_rows) + tile::variable("m_chunk") * chunk_rows;
    }
    return tile::variable(name + "_batch");
}

/// Pieces of 16 bytes of a row are exchanged as the copy unit's swizzle does, so that rows meet no bank conflicts. Where threads store
/// rows, each begins as far behind a boundary of 16 bytes as in the tensor.
std::vector<Expr> MatrixEpilogue::staged_place(const Staged &staged, const FragmentShape &shape) const {
    const int row_bytes = shape.strip * staged.bytes, per_piece = staged_piece_bytes / staged.bytes,
              rows_apart = staged_row_bytes / row_bytes;
    const Expr column = tile::variable("n_block") * (4 * shape.lanes) + tile::variable("n_quad") * shape.lanes;
    const Expr row = tile::variable("m_warp") * 16 + tile::variable("m_half") * 8 + tile::variable("m_row");
    if (staged.by_rows) {
        return {tile::variable("m_warpgroup"), slot(shape), row,
                (first_element(staged, shape) + row * to_halide(staged.place.stride(shape.rows))) % per_piece + column +
                    tile::variable("n_lane")};
    }
    const Expr turn = (tile::variable("m_row") / rows_apart) % (row_bytes / staged_piece_bytes);
    const Expr piece = simplify_index(column / per_piece, nest_.ranges), within = simplify_index(column % per_piece, nest_.ranges);
    return {tile::variable("m_warpgroup"), slot(shape), row, (piece ^ turn) * per_piece + within + tile::variable("n_lane")};
}

/// What lies outside of the tensor stays in shared memory: only what is read or stored by threads needs a condition.
bool MatrixEpilogue::needs_guard(const std::string &axis) const {
    return !direct_.empty() || std::any_of(staged_.begin(), staged_.end(), [&](const Staged &s) {
        bool reads = false;
        visit_reads(s.result.value, [&](const hi::Call *call) {
            const tile::Buffer *read = launch_.find_buffer(call->name);
            reads = reads || (read && read->memory == tile::Memory::global &&
                              std::any_of(call->args.begin(), call->args.end(), [&](const Expr &place) { return mentions(place, axis); }));
        });
        return reads;
    });
}

tile::Block MatrixEpilogue::guarded(tile::Block body, const FragmentShape &shape) const {
    const auto add = [&](const Expr &condition) { body = {tile::Statement{tile::If{condition, std::move(body)}}}; };
    for (const std::string &name : {shape.columns, shape.rows}) {
        const tile::Axis &a = *nest_.find_axis(name);
        if (!a.exact() && needs_guard(name)) {
            add(tile::variable(name) < to_halide(a.extent));
        }
    }
    for (const auto &[axes, condition] : nest_.guards) {
        if (std::any_of(axes.begin(), axes.end(), [&](const std::string &axis) { return needs_guard(axis); })) {
            add(simplify_index(condition, nest_.ranges));
        }
    }
    return body;
}

/// A strip of 64 rows that stands in shared memory goes to the tensor.
tile::Statement MatrixEpilogue::store(const Staged &staged, const FragmentShape &shape) const {
    const tile::Invoke::Argument from = buffer(staged.staging, {tile::variable("m_warpgroup"), slot(shape), Expr(0), Expr(0)});
    if (staged.by_rows) {
        const auto left = [&](const std::string &axis) {
            return scalar(to_halide(nest_.find_axis(axis)->extent) - strip_place(axis, shape));
        };
        return invoke("store_rows", {std::to_string(shape.strip)},
                      {buffer(staged.result.target.name), scalar(first_element(staged, shape)),
                       scalar(to_halide(staged.place.stride(shape.rows))), from, left(shape.rows), left(shape.columns)},
                      {staged.result.target.name});
    }
    if (staged.lines) {
        const PixelLines &lines = *staged.lines;
        const Expr first = strip_place(shape.rows, shape), column = strip_place(shape.columns, shape), places = to_halide(lines.places);
        std::vector<tile::Invoke::Argument> arguments{buffer(staged.result.target.name), from};
        for (const Expr &argument : {column, to_halide(lines.channels), first % places, first / places, places, to_halide(lines.width),
                                     to_halide(lines.lines), to_halide(lines.pixel_stride), to_halide(lines.line_stride)}) {
            arguments.push_back(scalar(argument));
        }
        return invoke("store_lines", {std::to_string(shape.strip)}, arguments, {staged.result.target.name});
    }
    std::vector<tile::Invoke::Argument> arguments{from, buffer(staged.staging + "_map")};
    for (const std::string &name : staged.coordinates) {
        arguments.push_back(scalar(strip_place(name, shape)));
    }
    return invoke("bulk_store", {std::to_string(staged.coordinates.size())}, arguments);
}

tile::Block MatrixEpilogue::statements(const FragmentShape &shape) const {
    tile::Block stores;
    for (const MatrixResult &result : direct_) {
        stores.push_back({tile::Store{result.target.name, result.places, {result.value}}});
    }
    for (const Staged &staged : staged_) {
        stores.push_back({tile::Store{staged.staging, staged_place(staged, shape), {staged.result.value}}});
    }
    tile::Block body{tile::Statement{tile::For{"n_lane", shape.lanes, Level::vector, guarded(std::move(stores), shape)}}};
    body = {tile::Statement{tile::For{"m_half", 2, Level::unroll, std::move(body)}}};
    body = {tile::Statement{tile::For{"n_block", shape.blocks(), Level::unroll, std::move(body)}}};
    if (!staged_.empty()) {
        // The fence before the copy unit reads also waits for the threads' own stores to the tensor.
        body.insert(body.begin(), invoke("stage_begin", {std::to_string(copies() ? slots(shape) : 0)}));
        body.push_back(invoke(copies() ? "stage_ready" : "sync_warpgroup"));
        for (const Staged &staged : staged_) {
            body.push_back(store(staged, shape));
        }
        if (copies()) {
            body.push_back(invoke("stage_commit"));
        }
    }
    body = {tile::Statement{tile::For{"n_strip", shape.strips(), Level::unroll, std::move(body)}}};
    return {tile::Statement{tile::For{"m_chunk", shape.chunks, Level::unroll, std::move(body)}}};
}

bool MatrixEpilogue::copies() const {
    return std::any_of(staged_.begin(), staged_.end(), [](const Staged &staged) { return !staged.by_threads(); });
}

tile::Block MatrixEpilogue::finish() const { return copies() ? tile::Block{invoke("stage_end")} : tile::Block(); }

}  // namespace tilewright
