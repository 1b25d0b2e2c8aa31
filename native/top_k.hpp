// The k largest scores of each row, best first, equal scores by lower column.
//
// The k-th largest of the maxima of small groups of columns is a lower bound of the k-th largest score. Hence one pass
// takes the maxima, and only the few groups that reach the bound are looked at again.

#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"

namespace pslrec::top_k {

namespace nb = nanobind;

constexpr float kHidden = -std::numeric_limits<float>::infinity();
// Columns per group. A group is every n-th column, n the number of groups: so the maxima of neighbouring groups are
// taken side by side, in vectors.
constexpr std::int64_t kGroup = 32;

struct Candidate {
    float score;
    std::int32_t column;
};

inline bool comes_before(const Candidate& one, const Candidate& other) {
    return one.score > other.score || (one.score == other.score && one.column < other.column);
}

// Works on one row at a time; its buffers are reused for the next.
class RowSelection {
public:
    RowSelection(std::int64_t n_columns, std::int64_t k)
        : n_columns_(n_columns), k_(k), maxima_(static_cast<std::size_t>((n_columns + kGroup - 1) / kGroup)) {}

    // False if the row holds a score that is not a number.
    bool select(const float* scores, float* values, std::int64_t* columns) {
        if (!take_maxima(scores)) return false;
        collect(scores, lower_bound());
        if (static_cast<std::int64_t>(candidates_.size()) > k_) {
            std::nth_element(candidates_.begin(), candidates_.begin() + (k_ - 1), candidates_.end(), comes_before);
            candidates_.resize(static_cast<std::size_t>(k_));
        }
        std::sort(candidates_.begin(), candidates_.end(), comes_before);
        write(scores, values, columns);
        return true;
    }

private:
    bool take_maxima(const float* scores) {
        const auto n_groups = static_cast<std::int64_t>(maxima_.size());
        return rows().group_maxima(scores, n_columns_, maxima_.data(), n_groups);
    }

    float lower_bound() {
        if (static_cast<std::int64_t>(maxima_.size()) < k_) return kHidden;
        ordered_ = maxima_;
        std::nth_element(ordered_.begin(), ordered_.begin() + (k_ - 1), ordered_.end(), std::greater<float>());
        return ordered_[static_cast<std::size_t>(k_ - 1)];
    }

    void collect(const float* scores, float bound) {
        const auto n_groups = static_cast<std::int64_t>(maxima_.size());
        candidates_.clear();
        for (std::int64_t group = 0; group < n_groups; ++group) {
            if (maxima_[static_cast<std::size_t>(group)] < bound) continue;
            for (std::int64_t column = group; column < n_columns_; column += n_groups) {
                if (scores[column] >= bound && scores[column] > kHidden) {
                    candidates_.push_back({scores[column], static_cast<std::int32_t>(column)});
                }
            }
        }
    }

    void write(const float* scores, float* values, std::int64_t* columns) const {
        std::int64_t place = 0;
        for (const Candidate& candidate : candidates_) {
            values[place] = candidate.score;
            columns[place++] = candidate.column;
        }
        // Hidden items fill what places are left.
        for (std::int64_t column = 0; place < k_; ++column) {
            if (scores[column] > kHidden) continue;
            values[place] = kHidden;
            columns[place++] = column;
        }
    }

    std::int64_t n_columns_;
    std::int64_t k_;
    std::vector<float> maxima_;
    std::vector<float> ordered_;
    std::vector<Candidate> candidates_;
};

// Fills `values` and `columns`, whose width is k; false if any score is not a number.
inline bool select_rows(const Array<const float, 2>& scores, const Array<float, 2>& values,
                        const Array<std::int64_t, 2>& columns) {
    const auto n_rows = static_cast<std::int64_t>(scores.shape(0));
    const auto n_columns = static_cast<std::int64_t>(scores.shape(1));
    const auto k = static_cast<std::int64_t>(values.shape(1));
    // Nothing to choose, or nothing to choose from; a selection needs at least one group of columns.
    if (k == 0 || n_columns == 0) return true;
    const float* from = scores.data();
    float* values_to = values.data();
    std::int64_t* columns_to = columns.data();
    std::atomic<bool> numbers{true};
#pragma omp parallel
    {
        RowSelection selection(n_columns, k);
#pragma omp for schedule(dynamic, 4)
        for (std::int64_t row = 0; row < n_rows; ++row) {
            if (!selection.select(from + row * n_columns, values_to + row * k, columns_to + row * k)) numbers = false;
        }
    }
    return numbers;
}

inline void register_with(nb::module_& module) {
    module.def("top_k", &select_rows, nb::arg("scores").noconvert(), nb::arg("values").noconvert(),
               nb::arg("columns").noconvert(), nb::call_guard<nb::gil_scoped_release>(),
               "Twin: `pslrec.kernels.top_k.top_k_plainly`. Fills `values` and `columns`; false if a score is not a "
               "number.");
}

}  // namespace pslrec::top_k
