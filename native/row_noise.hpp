// Noise on the rows of a table: see `noise_row.hpp`. The twin is `pslrec/kernels/row_noise.py`.

#pragma once

#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "counter_random.hpp"
#include "dispatch.hpp"

namespace pslrec {

inline void add_row_noise(Array<float, 2> table, std::uint64_t key, float length, int n_threads) {
    const auto n_rows = static_cast<std::int64_t>(table.shape(0));
    const auto columns = static_cast<std::int64_t>(table.shape(1));
    const Rows& run = rows();
#pragma omp parallel num_threads(n_threads)
    {
        std::vector<float> noise(columns + 1);
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < n_rows; ++row) {
            run.add_noise(table.data() + row * columns, columns, stream_of(key, static_cast<std::uint64_t>(row)), length,
                          noise.data());
        }
    }
    (void)n_threads;
}

}  // namespace pslrec
