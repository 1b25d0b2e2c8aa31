// Scores of sampled candidates, and their gradients, without ever holding a vector per candidate. The twin is
// `pslrec/kernels/sampled.py`.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "arrays.hpp"
#include "dispatch.hpp"

namespace pslrec {

inline void sampled_scores(Array<const float, 2> users, Array<const float, 2> items,
                           Array<const std::int32_t, 2> candidates, float scale, Array<float, 2> scores) {
    const auto batch = static_cast<std::int64_t>(candidates.shape(0));
    const auto width = static_cast<std::int64_t>(candidates.shape(1));
    const auto columns = static_cast<std::int64_t>(users.shape(1));
    const Rows& run = rows();
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < batch; ++row) {
        run.scores(users.data() + row * columns, items.data(), candidates.data() + row * width, width, columns, scale,
                   scores.data() + row * width);
    }
}

// The candidates of a batch brought together by item, so that each item's gradient is summed in registers and written once.
// A counting sort in parts that threads share: each part counts and places a run of rows. The order within an item is that of
// the batch, whatever the number of parts, and so is the sum.
class ByItem {
  public:
    // A part costs a row of counts. No more of them than these rows are shorter than the candidates they count, or a large
    // catalogue with many threads would spend its time on counts that are nearly all zero.
    void prepare(std::int64_t n_items, std::int64_t n_rows, std::int64_t width, int most_threads) {
        n_items_ = n_items;
        n_rows_ = n_rows;
        width_ = width;
        const std::int64_t n_candidates = n_rows * width;
        n_parts_ = std::clamp<std::int64_t>(n_candidates / std::max<std::int64_t>(n_items, 1), 1, most_threads);
        ends_.assign(n_parts_ * n_items, 0);
        if (static_cast<std::int64_t>(rows_.size()) < n_candidates) {
            rows_.resize(n_candidates);
            values_.resize(n_candidates);
        }
    }

    std::int64_t n_parts() const { return n_parts_; }

    void count(std::int64_t part, const std::int32_t* candidates) {
        std::uint32_t* counts = ends_.data() + part * n_items_;
        for (std::int64_t n = first_row(part) * width_; n < first_row(part + 1) * width_; ++n) ++counts[candidates[n]];
    }

    // From counts to where each part's candidates of each item begin.
    void lay_out() {
        std::uint32_t place = 0;
        for (std::int64_t item = 0; item < n_items_; ++item) {
            for (std::int64_t part = 0; part < n_parts_; ++part) {
                const std::uint32_t count = ends_[part * n_items_ + item];
                ends_[part * n_items_ + item] = place;
                place += count;
            }
        }
    }

    void place(std::int64_t part, const std::int32_t* candidates, const float* gradients) {
        std::uint32_t* next = ends_.data() + part * n_items_;
        for (std::int64_t row = first_row(part); row < first_row(part + 1); ++row) {
            for (std::int64_t n = row * width_; n < (row + 1) * width_; ++n) {
                const std::uint32_t place = next[candidates[n]]++;
                rows_[place] = static_cast<std::int32_t>(row);
                values_[place] = gradients[n];
            }
        }
    }

    // After all were placed: what the last part has come to is the end of an item, and the beginning of the next.
    void sum(std::int64_t item, const float* users, std::int64_t columns, float scale, float* gradient) const {
        const std::uint32_t* ends = ends_.data() + (n_parts_ - 1) * n_items_;
        const std::int64_t start = item == 0 ? 0 : ends[item - 1], stop = ends[item];
        rows().weighted_sum(values_.data() + start, users, rows_.data() + start, stop - start, columns, scale, gradient);
    }

  private:
    std::int64_t first_row(std::int64_t part) const { return n_rows_ * part / n_parts_; }

    std::int64_t n_items_ = 0, n_rows_ = 0, width_ = 0, n_parts_ = 1;
    std::vector<std::uint32_t> ends_;  // a row of items per part
    std::vector<std::int32_t> rows_;
    std::vector<float> values_;
};

inline void sampled_scores_backward(Array<const float, 2> users, Array<const float, 2> items,
                                    Array<const std::int32_t, 2> candidates, Array<const float, 2> gradients, float scale,
                                    Array<float, 2> user_gradients, Array<float, 2> item_gradients) {
    const auto batch = static_cast<std::int64_t>(candidates.shape(0));
    const auto width = static_cast<std::int64_t>(candidates.shape(1));
    const auto columns = static_cast<std::int64_t>(users.shape(1));
    const auto n_items = static_cast<std::int64_t>(items.shape(0));
    const Rows& run = rows();
#ifdef _OPENMP
    const int most_threads = omp_get_max_threads();
#else
    const int most_threads = 1;
#endif
    // Kept from batch to batch: fresh memory of this size costs as much as filling it.
    static thread_local ByItem kept;
    ByItem& by_item = kept;
    by_item.prepare(n_items, batch, width, most_threads);
    const std::int64_t n_parts = by_item.n_parts();
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (std::int64_t part = 0; part < n_parts; ++part) by_item.count(part, candidates.data());
#pragma omp single
        by_item.lay_out();
#pragma omp for schedule(static) nowait
        for (std::int64_t part = 0; part < n_parts; ++part) by_item.place(part, candidates.data(), gradients.data());
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < batch; ++row) {
            run.weighted_sum(gradients.data() + row * width, items.data(), candidates.data() + row * width, width, columns,
                             scale, user_gradients.data() + row * columns);
        }
#pragma omp for schedule(static)
        for (std::int64_t item = 0; item < n_items; ++item) {
            by_item.sum(item, users.data(), columns, scale, item_gradients.data() + item * columns);
        }
    }
}

// `scores` comes in with the positive's score in column 0 and its negatives' in the others, and goes out as the gradient.
inline void log_sum_rows(int surrogate, float exponent, Array<float, 2> scores, Array<float, 1> values) {
    const auto batch = static_cast<std::int64_t>(scores.shape(0));
    const auto width = static_cast<std::int64_t>(scores.shape(1));
    const Rows& run = rows();
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < batch; ++row) {
        values.data()[row] = run.log_sum(surrogate, scores.data() + row * width, width, exponent);
    }
}

}  // namespace pslrec
