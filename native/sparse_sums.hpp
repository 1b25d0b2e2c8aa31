// Product of two sparse matrices in compressed rows, added to a dense one:
//     out[row, place] += (left @ right)[row, columns[place]]
// Every row is summed on its own by one thread, in the order of the entries of `left`, and then added at once: so what
// a place gets depends neither on the number of threads nor on which other columns are asked for.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

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
};

inline void add_product(Array<const std::int64_t, 1> left_offsets, Array<const std::int32_t, 1> left_columns,
                        Array<const float, 1> left_values, Array<const std::int64_t, 1> right_offsets,
                        Array<const std::int32_t, 1> right_columns, Array<const float, 1> right_values,
                        std::int64_t n_columns, std::optional<Array<const std::int64_t, 1>> columns,
                        Array<float, 2> out) {
    const auto n_rows = static_cast<std::int64_t>(out.shape(0));
    const auto n_places = static_cast<std::int64_t>(out.shape(1));
    const std::int64_t expected = columns ? static_cast<std::int64_t>(columns->shape(0)) : n_columns;
    const bool fits = static_cast<std::int64_t>(left_offsets.shape(0)) == n_rows + 1 && n_places == expected &&
                      left_columns.shape(0) == left_values.shape(0) && right_columns.shape(0) == right_values.shape(0);
    if (!fits) throw std::invalid_argument("the shapes of a sparse sum do not fit together");
    const Factor left{left_offsets.data(), left_columns.data(), left_values.data()};
    const Factor right{right_offsets.data(), right_columns.data(), right_values.data()};
    const std::int64_t* places = columns ? columns->data() : nullptr;
    float* to = out.data();
    nb::gil_scoped_release release;
#pragma omp parallel
    {
        RowSums sums(n_columns);
        // Histories differ in length by orders of magnitude: small portions keep all threads busy to the end.
#pragma omp for schedule(dynamic, 16)
        for (std::int64_t row = 0; row < n_rows; ++row) {
            sums.add_row(left, right, row);
            if (places) {
                sums.add_to(to + row * n_places, places, n_places);
            } else {
                sums.add_to(to + row * n_places);
            }
            sums.clear();
        }
    }
}

inline void register_with(nb::module_& module) {
    module.def("add_sparse_product", &add_product, nb::arg("left_offsets").noconvert(),
               nb::arg("left_columns").noconvert(), nb::arg("left_values").noconvert(),
               nb::arg("right_offsets").noconvert(), nb::arg("right_columns").noconvert(),
               nb::arg("right_values").noconvert(), nb::arg("n_columns"), nb::arg("columns").none().noconvert(),
               nb::arg("out").noconvert(), "Twin: `pslrec.kernels._sparse_sums.add_sparse_product_plainly`.");
}

}  // namespace pslrec::sparse_sums
