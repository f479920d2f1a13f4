#include "lowering/cuda_schedules/register_tiles.h"

#include <algorithm>

namespace tilewright {

namespace {

constexpr std::int64_t few_rows = 8;
constexpr std::int64_t rows_of_streams = 2;  // with more, multiply-adds and conversions take as long as the memory

}  // namespace

std::vector<RegisterTile> register_tiles(const RegisterProduct &product, const SymbolRanges &symbols, const GpuFacts &facts) {
    const std::int64_t m = most_places(product.m, symbols), n = most_places(product.n, symbols),
                       batch = most_places(product.batch, symbols), k = most_places(product.k, symbols);
    if (m < 4 || n < 8) {
        return {};
    }
    struct Scored {
        RegisterTile tile;
        double cost;
    };
    std::vector<Scored> scored;
    for (const RegisterTile &shape : {RegisterTile{8, 8, 16, 16},
                                      {8, 8, 8, 16},
                                      {8, 4, 16, 16},
                                      {4, 8, 16, 16},
                                      {8, 4, 8, 16},
                                      {4, 4, 16, 16},
                                      {4, 4, 8, 16},
                                      {4, 4, 8, 8},
                                      {4, 4, 4, 8},
                                      {4, 4, 2, 16}}) {
        RegisterTile tile = shape;
        if (product.sum_bytes > 4 && tile.rows * tile.columns > 32) {
            continue;
        }
        tile.at_once = product.sum_bytes > 4 || tile.rows * tile.columns > 32 ? 2 : 4;
        const std::int64_t height = tile.rows * tile.row_threads, width = tile.columns * tile.column_threads,
                           threads = tile.row_threads * tile.column_threads;
        const std::int64_t blocks = batch * ((m + height - 1) / height) * ((n + width - 1) / width);
        const std::int64_t fit = std::max<std::int64_t>(tile.rows * tile.columns > 32 ? 512 / threads : 1024 / threads, 1);
        const std::int64_t together = std::min<std::int64_t>(fit, (blocks + facts.multiprocessors - 1) / facts.multiprocessors);
        const std::int64_t waves = (blocks + facts.multiprocessors * together - 1) / (facts.multiprocessors * together);
        // Cycles of one term on a multiprocessor: multiply-adds and loads of all threads, and its share of waiting for a step's loads.
        const double work = static_cast<double>(threads * together) / 128 * (tile.rows * tile.columns + 1.5 * (tile.rows + tile.columns));
        scored.push_back({tile, static_cast<double>(waves) * (work + 30)});
    }
    std::stable_sort(scored.begin(), scored.end(), [](const Scored &a, const Scored &b) { return a.cost < b.cost; });
    // Tiles of both operands in shared memory, where they are plain tensors.
    const bool stages = product.direct && product.sum_bytes <= 4 && product.row_tensor != product.column_tensor && k >= 32;
    std::vector<RegisterTile> tiles;
    for (const Scored &s : scored) {
        if (stages) {
            RegisterTile staged = s.tile;
            staged.staged = true;
            staged.at_once = 16;
            tiles.push_back(staged);
        }
        if (!stages || tiles.size() < 10) {
            tiles.push_back(s.tile);
        }
    }
    // Few tiles and many terms: blocks share the terms, and a pass of its own adds their sums.
    const RegisterTile &best = tiles.front();
    const std::int64_t height = best.rows * best.row_threads, width = best.columns * best.column_threads;
    const std::int64_t blocks = batch * ((m + height - 1) / height) * ((n + width - 1) / width);
    const bool splits = product.variables.size() == 1 && product.k.is_constant() && blocks * 2 <= facts.multiprocessors && k >= 1024;
    if (splits) {
        RegisterTile shared = best;
        shared.parts = static_cast<int>(std::min<std::int64_t>(2 * facts.multiprocessors / blocks, k / 256));
        tiles.insert(tiles.begin(), shared);
    }
    return tiles;
}

std::vector<SharedSums> shared_sums(const RegisterProduct &product, const SymbolRanges &symbols, const GpuFacts &facts) {
    // Every result reads its operands for itself: worth it where that is little, and a tile's threads would be few and wait long.
    constexpr std::int64_t most_products = std::int64_t{1} << 22, most_threads = 32, least_terms = 8;
    const std::int64_t results = most_places(product.batch, symbols) * most_places(product.m, symbols) * most_places(product.n, symbols);
    if (product.columns.empty() || results * most_places(product.k, symbols) > most_products ||
        results > std::int64_t{256} * facts.multiprocessors) {
        return {};
    }
    SharedSums sums;
    std::int64_t extent = 0;
    for (std::size_t i = 0; i < product.terms.size(); ++i) {
        if (!product.terms[i].is_constant()) {
            return {};
        }
        if (product.terms[i].value() > extent) {
            sums.variable = i;
            extent = product.terms[i].value();
        }
    }
    sums.along_k = sums.variable == 0 && product.rows_along_k && product.columns_along_k;
    sums.threads = 1;
    while (extent >= least_terms && sums.threads < most_threads && sums.threads * 2 <= extent) {
        sums.threads *= 2;
    }
    sums.columns = sums.threads == 1 ? 64 : 8;
    std::vector<SharedSums> all{sums};
    if (sums.threads > 8) {
        sums.threads = 8;
        sums.columns = 16;
        all.push_back(sums);
    }
    return all;
}

namespace {

/// About four vectors of a row a thread, all under way at once; bytes are multiplied slowly enough for several rows to share the other
/// operand.
std::vector<ProductStream> streams_along_terms(std::int64_t few, std::int64_t rows_in_all, std::int64_t vectors, int bytes,
                                               const GpuFacts &facts) {
    std::vector<ProductStream> streams;
    const auto add = [&](int lanes, int rows) {
        if (rows_in_all * lanes / (256L * rows) < facts.multiprocessors) {
            lanes = rows_in_all * 128 / (256L * rows) < facts.multiprocessors ? 256 : 128;
        }
        const bool known =
            std::any_of(streams.begin(), streams.end(), [&](const ProductStream &s) { return s.lanes == lanes && s.rows == rows; });
        if (!known) {
            const std::int64_t wanted = few > 4 ? 1 : few > 2 ? 2 : std::max((lanes > 32 ? 4 : 8) / rows, 1);
            streams.push_back({true, lanes, rows, static_cast<int>(std::clamp<std::int64_t>((vectors + lanes - 1) / lanes, 1, wanted)), 1});
        }
    };
    const int lanes = vectors >= 1024 ? 256 : vectors >= 512 ? 128 : 32;
    if (few > 2) {
        add(32, 4);
        add(32, 2);
        return streams;
    }
    add(lanes, lanes == 32 ? 2 : bytes == 1 ? 4 : 1);
    for (const int other : {lanes, 32, 128, 256}) {
        for (const int rows : {2, 1, 4}) {
            add(other, rows);
        }
    }
    return streams;
}

}  // namespace

std::vector<ProductStream> product_streams(const RegisterProduct &product, const SymbolRanges &symbols, const GpuFacts &facts) {
    const std::int64_t m = most_places(product.m, symbols), n = most_places(product.n, symbols),
                       batch = most_places(product.batch, symbols);
    const std::int64_t few = std::min(m, n), many = std::max(m, n), k = product.k.bounds(symbols).min;
    if (!product.streams || few > few_rows || many < 32 || k < 128) {
        return {};
    }
    const bool along_k = n >= m ? product.columns_along_k : product.rows_along_k;
    const int bytes = n >= m ? product.column_bytes : product.row_bytes;
    if (along_k) {
        return streams_along_terms(few, batch * many, k * bytes / vector_bytes, bytes, facts);
    }
    std::vector<ProductStream> tiles;
    const int width = std::max(vector_bytes / bytes, 1);
    const std::int64_t blocks = std::max<std::int64_t>(batch * many / (32 * width), 1);
    ProductStream tile{false, 8, width, few <= 4 ? 4 : 2, 1};
    if (blocks < facts.multiprocessors && product.k.is_constant() && k >= 512) {
        tile.parts = static_cast<int>(std::clamp<std::int64_t>(2 * facts.multiprocessors / blocks, 1, k / 128));
        tiles.push_back(tile);
        tile.parts = 1;
        tile.lanes = 32;
    }
    tiles.push_back(tile);
    return tiles;
}

bool streams_best(const Kernel &kernel, const std::string &stage, const GpuFacts &facts) {
    const auto product = match_register_product(kernel, stage);
    const SymbolRanges &symbols = kernel.algorithm.symbols;
    return product && std::min(most_places(product->m, symbols), most_places(product->n, symbols)) <= rows_of_streams &&
           !product_streams(*product, symbols, facts).empty();
}
}  // namespace tilewright
