// Product of two sparse matrices in compressed rows, row by row: added to a dense matrix,
//     out[row, place] += (left @ right)[row, columns[place]]
// or cut down to the largest entries of each row.
// Every row is summed on its own by one thread, in the order of the entries of `left`, and only then used: so what a
// place gets depends neither on the number of threads nor on which other columns are asked for.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"

namespace pslrec::sparse_sums {

namespace nb = nanobind;

struct Factor {
    const std::int64_t* offsets;
    const std::int32_t* columns;
    const float* values;
};

// Sums of one row over all columns, most of which stay 0; used again for the next row.
class RowSums {
public:
    explicit RowSums(std::int64_t n_columns)
        : sums_(static_cast<std::size_t>(n_columns)), is_touched_(static_cast<std::size_t>(n_columns)) {}

    void add_row(const Factor& left, const Factor& right, std::int64_t row) {
        for (std::int64_t entry = left.offsets[row]; entry < left.offsets[row + 1]; ++entry) {
            const float scale = left.values[entry];
            const std::int32_t middle = left.columns[entry];
            for (std::int64_t place = right.offsets[middle]; place < right.offsets[middle + 1]; ++place) {
                const auto column = static_cast<std::size_t>(right.columns[place]);
                if (!is_touched_[column]) {
                    is_touched_[column] = 1;
                    touched_.push_back(right.columns[place]);
                }
                sums_[column] += scale * right.values[place];
            }
        }
    }

    // To every column.
    void add_to(float* out) const {
        for (const std::int32_t column : touched_) out[column] += sums_[static_cast<std::size_t>(column)];
    }

    // To the places whose columns are given.
    void add_to(float* out, const std::int64_t* columns, std::int64_t n_places) const {
        for (std::int64_t place = 0; place < n_places; ++place)
            out[place] += sums_[static_cast<std::size_t>(columns[place])];
    }

    // The k largest positive sums but the one of column `left_out`, equal ones by lower column; in the order of columns.
    // Returns how many there are.
    std::int64_t write_largest(std::int64_t k, std::int32_t left_out, std::int32_t* columns, float* values) {
        const auto comes_before = [this](std::int32_t one, std::int32_t other) {
            const float first = sums_[static_cast<std::size_t>(one)];
            const float second = sums_[static_cast<std::size_t>(other)];
            return first > second || (first == second && one < other);
        };
        largest_.clear();
        for (const std::int32_t column : touched_) {
            if (column != left_out && sums_[static_cast<std::size_t>(column)] > 0.0f) largest_.push_back(column);
        }
        if (static_cast<std::int64_t>(largest_.size()) > k) {
            std::nth_element(largest_.begin(), largest_.begin() + k, largest_.end(), comes_before);
            largest_.resize(static_cast<std::size_t>(k));
        }
        std::sort(largest_.begin(), largest_.end());
        for (const std::int32_t column : largest_) {
            *columns++ = column;
            *values++ = sums_[static_cast<std::size_t>(column)];
        }
        return static_cast<std::int64_t>(largest_.size());
    }

    void clear() {
        for (const std::int32_t column : touched_) {
            sums_[static_cast<std::size_t>(column)] = 0.0f;
            is_touched_[static_cast<std::size_t>(column)] = 0;
        }
        touched_.clear();
    }

private:
    std::vector<float> sums_;
    std::vector<char> is_touched_;
    std::vector<std::int32_t> touched_;
    std::vector<std::int32_t> largest_;
};

// Calls `use` with the sums of every row of the product, and the row.
template <typename Use>
void for_every_row(const Factor& left, const Factor& right, std::int64_t n_rows, std::int64_t n_columns, Use use) {
    nb::gil_scoped_release release;
#pragma omp parallel
    {
        RowSums sums(n_columns);
        // Histories differ in length by orders of magnitude: small portions keep all threads busy to the end.
#pragma omp for schedule(dynamic, 16)
        for (std::int64_t row = 0; row < n_rows; ++row) {
            sums.add_row(left, right, row);
            use(sums, row);
            sums.clear();
        }
    }
}

using Offsets = Array<const std::int64_t, 1>;
using Columns = Array<const std::int32_t, 1>;
using Values = Array<const float, 1>;

inline Factor factor(const Offsets& offsets, const Columns& columns, const Values& values) {
    return {offsets.data(), columns.data(), values.data()};
}

inline void check(std::int64_t n_rows, const Offsets& left_offsets, const Columns& left_columns, const Values& left_values,
                  const Columns& right_columns, const Values& right_values, bool results_fit) {
    const bool fits = static_cast<std::int64_t>(left_offsets.shape(0)) == n_rows + 1 &&
                      left_columns.shape(0) == left_values.shape(0) && right_columns.shape(0) == right_values.shape(0);
    if (!fits || !results_fit) throw std::invalid_argument("the shapes of a sparse product do not fit together");
}

inline void add_product(Offsets left_offsets, Columns left_columns, Values left_values, Offsets right_offsets,
                        Columns right_columns, Values right_values, std::int64_t n_columns,
                        std::optional<Offsets> columns, Array<float, 2> out) {
    const Factor left = factor(left_offsets, left_columns, left_values);
    const Factor right = factor(right_offsets, right_columns, right_values);
    const auto n_rows = static_cast<std::int64_t>(out.shape(0));
    const auto n_places = static_cast<std::int64_t>(out.shape(1));
    // Not by the pointer, which may be null where no columns are asked for.
    const bool is_partial = columns.has_value();
    const std::int64_t* places = is_partial ? columns->data() : nullptr;
    const std::int64_t expected = is_partial ? static_cast<std::int64_t>(columns->shape(0)) : n_columns;
    check(n_rows, left_offsets, left_columns, left_values, right_columns, right_values, n_places == expected);
    float* to = out.data();
    for_every_row(left, right, n_rows, n_columns, [=](const RowSums& sums, std::int64_t row) {
        if (is_partial) {
            sums.add_to(to + row * n_places, places, n_places);
        } else {
            sums.add_to(to + row * n_places);
        }
    });
}

// Fills the first `counts[row]` places of each row of `columns` and `values`, whose width is the number of entries to
// keep; the diagonal is left out.
inline void largest_of_product(Offsets left_offsets, Columns left_columns, Values left_values, Offsets right_offsets,
                               Columns right_columns, Values right_values, std::int64_t n_columns,
                               Array<std::int32_t, 2> columns, Array<float, 2> values, Array<std::int64_t, 1> counts) {
    const Factor left = factor(left_offsets, left_columns, left_values);
    const Factor right = factor(right_offsets, right_columns, right_values);
    const auto n_rows = static_cast<std::int64_t>(columns.shape(0));
    const auto k = static_cast<std::int64_t>(columns.shape(1));
    const bool fits = static_cast<std::int64_t>(values.shape(0)) == n_rows &&
                      static_cast<std::int64_t>(values.shape(1)) == k &&
                      static_cast<std::int64_t>(counts.shape(0)) == n_rows;
    check(n_rows, left_offsets, left_columns, left_values, right_columns, right_values, fits);
    std::int32_t* columns_to = columns.data();
    float* values_to = values.data();
    std::int64_t* counts_to = counts.data();
    for_every_row(left, right, n_rows, n_columns, [=](RowSums& sums, std::int64_t row) {
        const auto diagonal = static_cast<std::int32_t>(row);
        counts_to[row] = sums.write_largest(k, diagonal, columns_to + row * k, values_to + row * k);
    });
}

inline void register_with(nb::module_& module) {
    using namespace nb::literals;
    module.def("add_sparse_product", &add_product, "left_offsets"_a.noconvert(), "left_columns"_a.noconvert(),
               "left_values"_a.noconvert(), "right_offsets"_a.noconvert(), "right_columns"_a.noconvert(),
               "right_values"_a.noconvert(), "n_columns"_a, "columns"_a.none().noconvert(), "out"_a.noconvert(),
               "Twin: `pslrec.kernels._sparse_sums.add_sparse_product_plainly`.");
    module.def("largest_of_sparse_product", &largest_of_product, "left_offsets"_a.noconvert(),
               "left_columns"_a.noconvert(), "left_values"_a.noconvert(), "right_offsets"_a.noconvert(),
               "right_columns"_a.noconvert(), "right_values"_a.noconvert(), "n_columns"_a, "columns"_a.noconvert(),
               "values"_a.noconvert(), "counts"_a.noconvert(),
               "Twin: `pslrec.kernels._sparse_sums.largest_of_product_plainly`.");
}

}  // namespace pslrec::sparse_sums
