// Products of dense matrices as exact training and ranking need them, spread over threads. Each thread works on its own part of
// the result; the inner loops are in `product_tiles.hpp`.

#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"

namespace pslrec::products {

namespace nb = nanobind;

using Matrix = Array<float, 2>;
using ConstMatrix = Array<const float, 2>;

inline void check(bool fits, std::int64_t n_users, std::int64_t n_items, std::int64_t columns) {
    const bool is_whole = columns > 0 && columns % rows().product_lanes() == 0;
    if (n_users == 0 || n_items == 0) throw std::invalid_argument("a product of nothing is left to the caller");
    if (!fits || !is_whole) throw std::invalid_argument("the shapes of a product do not fit together, or its columns are no whole vectors");
}

template <typename Of>
std::int64_t rows_of(const Of& matrix) { return static_cast<std::int64_t>(matrix.shape(0)); }

template <typename Of>
std::int64_t columns_of(const Of& matrix) { return static_cast<std::int64_t>(matrix.shape(1)); }

// Some tiles of items, so that scores are written in long runs: as many as stay in the cache, and leave work for all threads.
inline std::int64_t items_at_once(std::int64_t tile, std::int64_t n_items, std::int64_t columns, int n_threads) {
    constexpr std::int64_t kCached = 16384, kBlocksPerThread = 8;
    const std::int64_t cached = kCached / (columns * tile);
    const std::int64_t shared = n_items / (tile * kBlocksPerThread * std::max(n_threads, 1));
    return tile * std::max<std::int64_t>(std::min(cached, shared), 1);
}

// out = scale * users @ items^T, or that added to `out`
inline void times_transposed(ConstMatrix users, ConstMatrix items, float scale, bool adds, Matrix out, int n_threads) {
    const std::int64_t n_users = rows_of(users), n_items = rows_of(items), columns = columns_of(users);
    const Rows& kernels = rows();
    check(columns_of(items) == columns && rows_of(out) == n_users && columns_of(out) == n_items, n_users, n_items, columns);
    const std::int64_t at_once = items_at_once(kernels.product_items(), n_items, columns, n_threads);
    nb::gil_scoped_release release;
#pragma omp parallel num_threads(n_threads)
    {
        std::vector<float> panels(static_cast<std::size_t>(columns * at_once));
#pragma omp for schedule(dynamic)
        for (std::int64_t first = 0; first < n_items; first += at_once) {
            kernels.product_scores(users.data(), n_users, items.data() + first * columns, std::min(at_once, n_items - first),
                                   columns, scale, adds, panels.data(), out.data() + first, n_items);
        }
    }
    (void)n_threads;
}

// out = scale * slopes @ items
inline void times(ConstMatrix slopes, ConstMatrix items, float scale, Matrix out, int n_threads) {
    const std::int64_t n_users = rows_of(slopes), n_items = rows_of(items), columns = columns_of(items);
    const Rows& kernels = rows();
    check(columns_of(slopes) == n_items && rows_of(out) == n_users && columns_of(out) == columns, n_users, n_items, columns);
    const std::int64_t most = std::max<std::int64_t>(n_threads, 1);
    // A thread's users in one go, as all of them visit the same items while those are in its cache.
    const std::int64_t tiles = (n_users + kTileRows - 1) / kTileRows;
    const std::int64_t share = (tiles + most - 1) / most * kTileRows;
    nb::gil_scoped_release release;
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (std::int64_t first = 0; first < n_users; first += share) {
        kernels.product_users(slopes.data() + first * n_items, std::min(share, n_users - first), n_items, items.data(), columns,
                              scale, out.data() + first * columns);
    }
}

// out = scale * slopes^T @ users, or that added to `out`
inline void transposed_times(ConstMatrix slopes, ConstMatrix users, float scale, bool adds, Matrix out, int n_threads) {
    const std::int64_t n_users = rows_of(slopes), n_items = columns_of(slopes), columns = columns_of(users);
    const Rows& kernels = rows();
    check(rows_of(users) == n_users && rows_of(out) == n_items && columns_of(out) == columns, n_users, n_items, columns);
    nb::gil_scoped_release release;
#pragma omp parallel num_threads(n_threads)
    {
        std::vector<float> room(static_cast<std::size_t>(kGatheredItems * kGatheredUsers));
#pragma omp for schedule(static)
        for (std::int64_t first = 0; first < n_items; first += kGatheredItems) {
            kernels.product_items_of(slopes.data() + first, n_items, n_users, std::min(kGatheredItems, n_items - first),
                                     users.data(), columns, scale, adds, room.data(), out.data() + first * columns);
        }
    }
    (void)n_threads;
}

inline void register_with(nb::module_& module) {
    using namespace nb::literals;
    module.def("product_lanes", [] { return rows().product_lanes(); }, "Columns of a product are a multiple of this.");
    module.def("times_transposed", &times_transposed, "users"_a.noconvert(), "items"_a.noconvert(), "scale"_a, "adds"_a,
               "out"_a.noconvert(), "n_threads"_a, "Twin: `torch.addmm(out, users, items.T)`.");
    module.def("times", &times, "slopes"_a.noconvert(), "items"_a.noconvert(), "scale"_a, "out"_a.noconvert(), "n_threads"_a,
               "Twin: `torch.mm(slopes, items)`.");
    module.def("transposed_times", &transposed_times, "slopes"_a.noconvert(), "users"_a.noconvert(), "scale"_a, "adds"_a,
               "out"_a.noconvert(), "n_threads"_a, "Twin: `torch.addmm(out, slopes.T, users)`.");
}

}  // namespace pslrec::products
