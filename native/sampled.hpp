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

// One thread's share of the items: the candidates that fall on them, brought together by a counting sort, so that each
// item's gradient is summed in registers and written once. The order within an item is that of the batch, whatever the
// number of threads, and so is the sum.
class ItemShare {
  public:
    ItemShare(std::int32_t begin, std::int32_t end) : begin_(begin), end_(end), starts_(end - begin + 1, 0) {}

    void sort(const std::int32_t* candidates, const float* gradients, std::int64_t batch, std::int64_t width) {
        const auto n_items = static_cast<std::uint32_t>(end_ - begin_);
        for (std::int64_t n = 0; n < batch * width; ++n) {
            const auto item = static_cast<std::uint32_t>(candidates[n] - begin_);
            if (item < n_items) ++starts_[item + 1];
        }
        for (std::size_t item = 1; item < starts_.size(); ++item) starts_[item] += starts_[item - 1];
        rows_.resize(starts_.back());
        values_.resize(starts_.back());
        std::vector<std::int64_t> next(starts_.begin(), starts_.end() - 1);
        for (std::int64_t row = 0; row < batch; ++row) {
            for (std::int64_t n = row * width; n < (row + 1) * width; ++n) {
                const auto item = static_cast<std::uint32_t>(candidates[n] - begin_);
                if (item >= n_items) continue;
                const std::int64_t place = next[item]++;
                rows_[place] = static_cast<std::int32_t>(row);
                values_[place] = gradients[n];
            }
        }
    }

    void sum(const float* users, std::int64_t columns, float scale, float* item_gradients) const {
        for (std::int32_t item = begin_; item < end_; ++item) {
            const std::int64_t start = starts_[item - begin_], stop = starts_[item - begin_ + 1];
            rows().weighted_sum(values_.data() + start, users, rows_.data() + start, stop - start, columns, scale,
                                item_gradients + item * columns);
        }
    }

  private:
    std::int32_t begin_, end_;
    std::vector<std::int64_t> starts_;
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
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < batch; ++row) {
            run.weighted_sum(gradients.data() + row * width, items.data(), candidates.data() + row * width, width, columns,
                             scale, user_gradients.data() + row * columns);
        }
#ifdef _OPENMP
        const std::int64_t thread = omp_get_thread_num(), n_threads = omp_get_num_threads();
#else
        const std::int64_t thread = 0, n_threads = 1;
#endif
        ItemShare share(static_cast<std::int32_t>(n_items * thread / n_threads),
                        static_cast<std::int32_t>(n_items * (thread + 1) / n_threads));
        share.sort(candidates.data(), gradients.data(), batch, width);
        share.sum(users.data(), columns, scale, item_gradients.data());
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
