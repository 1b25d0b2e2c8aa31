// Products of dense matrices in tiles that stay in registers. Included into the namespace of each variant.
//
// All three products of exact training are sums over k of left(row, k) * right(k, column). A tile has a few rows and a few
// vectors of columns; a number of the left matrix is spread over a vector, one of the right matrix is read as it lies. The
// order of a sum depends on the shapes alone, so neither threads nor blocks change a result.

#pragma once

#include <cstdint>

#include "dispatch.hpp"
#include "vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

// As many sums as the registers hold beside one row of the right matrix: 32 registers of AVX-512, 16 of the others.
constexpr int kTileVectors = kVectorBytes == 64 ? 4 : 2;
constexpr std::int64_t kTileColumns = kTileVectors * kLanes;
// Rows of the right matrix between two visits of a tile: they stay in the second cache.
constexpr std::int64_t kDepth = 512;
// The left matrix as it lies, or mirrored. What is known when compiling leaves more registers to the loop.
struct ByRow {
    const float* numbers;
    std::int64_t step;

    float at(std::int64_t row, std::int64_t k) const { return numbers[row * step + k]; }
    ByRow from_row(std::int64_t row) const { return {numbers + row * step, step}; }
};

struct Gathered {
    const float* numbers;

    float at(std::int64_t row, std::int64_t k) const { return numbers[k * kGatheredItems + row]; }
    Gathered from_row(std::int64_t row) const { return {numbers + row}; }
};

struct Right {
    const float* numbers;
    std::int64_t step;  // from one k to the next
};

struct Out {
    float* numbers;
    std::int64_t step;  // from one row to the next
    float scale;
    bool adds;  // to what is there, instead of overwriting it

    Out from(std::int64_t row, std::int64_t column) const { return {numbers + row * step + column, step, scale, adds}; }
};

// A function of its own: among other loops, the compiler would run out of registers.
template <int Rows, int Vectors, bool Adds, typename Left>
__attribute__((noinline)) void tile(Left left, Right right, std::int64_t depth, Out out) {
    Vector sums[Rows][Vectors] = {};
    for (std::int64_t k = 0; k < depth; ++k) {
        Vector columns[Vectors];
        for (int v = 0; v < Vectors; ++v) columns[v] = load(right.numbers + k * right.step + v * kLanes);
        for (int row = 0; row < Rows; ++row) {
            const Vector factor = spread(left.at(row, k));
            for (int v = 0; v < Vectors; ++v) sums[row][v] += factor * columns[v];
        }
    }
    for (int row = 0; row < Rows; ++row) {
        for (int v = 0; v < Vectors; ++v) {
            float* place = out.numbers + row * out.step + v * kLanes;
            // In one expression, so that it is rounded alike in tiles of all sizes.
            if constexpr (Adds) {
                store(place, sums[row][v] * out.scale + load(place));
            } else {
                store(place, sums[row][v] * out.scale);
            }
        }
    }
}

template <int Vectors, bool Adds, typename Left>
void tiles_of_rows(Left left, std::int64_t n_rows, Right right, std::int64_t depth, Out out) {
    std::int64_t row = 0;
    for (; row + kTileRows <= n_rows; row += kTileRows) {
        tile<kTileRows, Vectors, Adds>(left.from_row(row), right, depth, out.from(row, 0));
    }
    left = left.from_row(row);
    out = out.from(row, 0);
    switch (n_rows - row) {
        case 5: return tile<5, Vectors, Adds>(left, right, depth, out);
        case 4: return tile<4, Vectors, Adds>(left, right, depth, out);
        case 3: return tile<3, Vectors, Adds>(left, right, depth, out);
        case 2: return tile<2, Vectors, Adds>(left, right, depth, out);
        case 1: return tile<1, Vectors, Adds>(left, right, depth, out);
        default: return;
    }
}

template <int Vectors, typename Left>
void rows_of_tiles(Left left, std::int64_t n_rows, Right right, std::int64_t depth, Out out) {
    if (out.adds) {
        tiles_of_rows<Vectors, true>(left, n_rows, right, depth, out);
    } else {
        tiles_of_rows<Vectors, false>(left, n_rows, right, depth, out);
    }
}

// `n_columns` of right and out, whole vectors of them.
template <typename Left>
void product(Left left, std::int64_t n_rows, Right right, std::int64_t n_columns, std::int64_t depth, Out out) {
    std::int64_t column = 0;
    for (; column + kTileColumns <= n_columns; column += kTileColumns) {
        rows_of_tiles<kTileVectors>(left, n_rows, {right.numbers + column, right.step}, depth, out.from(0, column));
    }
    for (; column < n_columns; column += kLanes) {
        rows_of_tiles<1>(left, n_rows, {right.numbers + column, right.step}, depth, out.from(0, column));
    }
}

// Takes the lower or the upper halves of every run of 2 * Width lanes, of both vectors in turn.
template <int Width, bool Upper>
inline Vector halves(Vector one, Vector other) {
    Whole places;
    for (int lane = 0; lane < kLanes; ++lane) {
        const int in_run = lane % (2 * Width), first = lane - in_run + (Upper ? Width : 0);
        places[lane] = in_run < Width ? first + in_run : static_cast<int>(kLanes) + first + in_run - Width;
    }
#ifdef __clang__
    Vector taken;
    for (int lane = 0; lane < kLanes; ++lane) taken[lane] = places[lane] < kLanes ? one[places[lane]] : other[places[lane] - kLanes];
    return taken;
#else
    return __builtin_shuffle(one, other, places);
#endif
}

template <int Width>
inline void exchange(Vector (&rows)[kLanes]) {
    for (int first = 0; first < kLanes; first += 2 * Width) {
        for (int row = first; row < first + Width; ++row) {
            const Vector low = halves<Width, false>(rows[row], rows[row + Width]);
            rows[row + Width] = halves<Width, true>(rows[row], rows[row + Width]);
            rows[row] = low;
        }
    }
}

// A square of kLanes rows and columns, mirrored.
inline void transpose(Vector (&rows)[kLanes]) {
    exchange<1>(rows);
    exchange<2>(rows);
    if constexpr (kLanes > 4) exchange<4>(rows);
    if constexpr (kLanes > 8) exchange<8>(rows);
}

// The transpose of up to kTileColumns rows, filled up with zeros.
inline void lay_out(const float* items, std::int64_t n_items, std::int64_t columns, float* panel) {
    for (std::int64_t first = 0; first < kTileColumns; first += kLanes) {
        for (std::int64_t column = 0; column < columns; column += kLanes) {
            Vector rows[kLanes];
            for (int row = 0; row < kLanes; ++row) {
                rows[row] = first + row < n_items ? load(items + (first + row) * columns + column) : Vector{};
            }
            transpose(rows);
            for (int row = 0; row < kLanes; ++row) store(panel + (column + row) * kTileColumns + first, rows[row]);
        }
    }
}

inline void copy_rows(const float* from, std::int64_t from_step, float* to, std::int64_t to_step, std::int64_t n_rows,
                      std::int64_t n_columns) {
    for (std::int64_t row = 0; row < n_rows; ++row) {
        for (std::int64_t column = 0; column < n_columns; ++column) to[row * to_step + column] = from[row * from_step + column];
    }
}

// Scores are written to memory that is not in the cache, and would be waited for.
inline void ask_for_tile(const float* place, std::int64_t n_rows, std::int64_t step) {
    constexpr std::int64_t kFloatsPerLine = 16;
    for (std::int64_t row = 0; row < n_rows; ++row) {
        for (std::int64_t column = 0; column < kTileColumns; column += kFloatsPerLine) {
            __builtin_prefetch(place + row * step + column, 1);
        }
    }
}

}  // namespace

std::int64_t product_lanes() { return kLanes; }

// Items of a tile.
std::int64_t product_items() { return kTileColumns; }

// out[user, i] = scale * <users[user], items[i]> of some items; `panels` has room for columns * n_items, in whole tiles.
void product_scores(const float* users, std::int64_t n_users, const float* items, std::int64_t n_items, std::int64_t columns,
                    float scale, bool adds, float* panels, float* out, std::int64_t out_step) {
    const std::int64_t n_panels = (n_items + kTileColumns - 1) / kTileColumns;
    const std::int64_t panel_size = columns * kTileColumns;
    for (std::int64_t panel = 0; panel < n_panels; ++panel) {
        const std::int64_t first = panel * kTileColumns;
        lay_out(items + first * columns, n_items - first, columns, panels + panel * panel_size);
    }
    const std::int64_t n_whole = n_items / kTileColumns;
    const std::int64_t n_rest = n_items - n_whole * kTileColumns;
    // A few users with all the items: so each user's scores are written in long runs.
    for (std::int64_t user = 0; user < n_users; user += kTileRows) {
        const std::int64_t n_rows = n_users - user < kTileRows ? n_users - user : kTileRows;
        const ByRow left{users + user * columns, columns};
        const Out place{out + user * out_step, out_step, scale, adds};
        for (std::int64_t panel = 0; panel < n_whole; ++panel) {
            const Right right{panels + panel * panel_size, kTileColumns};
            ask_for_tile(place.from(0, (panel + 1) * kTileColumns).numbers, n_rows, out_step);
            rows_of_tiles<kTileVectors>(left, n_rows, right, columns, place.from(0, panel * kTileColumns));
        }
        if (n_rest == 0) continue;
        // The last items do not fill a tile, and what lies behind them belongs to the next user.
        float rest[kTileRows * kTileColumns] = {};
        float* last = place.from(0, n_whole * kTileColumns).numbers;
        if (adds) copy_rows(last, out_step, rest, kTileColumns, n_rows, n_rest);
        const Right right{panels + n_whole * panel_size, kTileColumns};
        rows_of_tiles<kTileVectors>(left, n_rows, right, columns, {rest, kTileColumns, scale, adds});
        copy_rows(rest, kTileColumns, last, out_step, n_rows, n_rest);
    }
}

// out[user] = scale * sum_i slopes[user, i] * items[i]
void product_users(const float* slopes, std::int64_t n_users, std::int64_t n_items, const float* items, std::int64_t columns,
                   float scale, float* out) {
    for (std::int64_t first = 0; first < n_items; first += kDepth) {
        const std::int64_t depth = n_items - first < kDepth ? n_items - first : kDepth;
        product(ByRow{slopes + first, n_items}, n_users, {items + first * columns, columns}, columns, depth,
                {out, columns, scale, first > 0});
    }
}

// out[i] = scale * sum_u slopes[u, i] * users[u], or that added to it, of at most kGatheredItems items; `room` is for kGatheredItems * kGatheredUsers numbers.
void product_items_of(const float* slopes, std::int64_t slopes_step, std::int64_t n_users, std::int64_t n_items,
                      const float* users, std::int64_t columns, float scale, bool adds, float* room, float* out) {
    for (std::int64_t first = 0; first < n_users; first += kGatheredUsers) {
        const std::int64_t depth = n_users - first < kGatheredUsers ? n_users - first : kGatheredUsers;
        for (std::int64_t user = 0; user < depth; ++user) {
            const float* from = slopes + (first + user) * slopes_step;
            float* to = room + user * kGatheredItems;
            if (n_items == kGatheredItems) {
                for (std::int64_t item = 0; item < kGatheredItems; item += kLanes) store(to + item, load(from + item));
            } else {
                for (std::int64_t item = 0; item < n_items; ++item) to[item] = from[item];
            }
        }
        product(Gathered{room}, n_items, {users + first * columns, columns}, columns, depth,
                {out, columns, scale, adds || first > 0});
    }
}

}  // namespace pslrec::PSLREC_VARIANT
