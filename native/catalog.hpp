// Exact training on a block of users: their scores over the whole catalogue become the gradient, row by row. What a row
// operation is, `catalog_row.hpp` says; here a row is cut to the user's negatives and put back together.

#pragma once

#include <math.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"

namespace pslrec {

// Item lists by user, laid end to end.
struct Lists {
    const std::int64_t* offsets;
    const std::int32_t* items;

    std::int64_t size(std::int64_t user) const { return offsets[user + 1] - offsets[user]; }
    const std::int32_t* begin(std::int64_t user) const { return items + offsets[user]; }
};

// Numbers that all rows share.
class CatalogTables {
  public:
    explicit CatalogTables(double exponent) : cosines(512) {
        for (std::size_t t = 0; t < cosines.size(); ++t) cosines[t] = ::cos(3.14159265358979323846 * static_cast<double>(t) / 256.0);
        if (exponent == ::floor(exponent) && exponent >= 1.0 && exponent <= 256.0) {
            fill(static_cast<int>(exponent), binomials, log_binomials);
            fill(static_cast<int>(exponent) - 1, lower_binomials, lower_log_binomials);
        }
    }

    std::vector<double> binomials, log_binomials, lower_binomials, lower_log_binomials, cosines;

  private:
    static void fill(int n, std::vector<double>& plain, std::vector<double>& logs) {
        for (int m = 0; m <= n; ++m) {
            logs.push_back(::lgamma(n + 1.0) - ::lgamma(m + 1.0) - ::lgamma(n - m + 1.0));
            plain.push_back(::round(::exp(logs.back())));
        }
    }
};

// The stretches of a catalogue between some items, and where each begins once they stand close together.
template <typename Body>
void for_each_gap(const std::int32_t* items, std::int64_t count, std::int64_t n_items, Body body) {
    std::int64_t from = 0, place = 0;
    for (std::int64_t t = 0; t <= count; ++t) {
        const std::int64_t to = t < count ? items[t] : n_items;
        body(from, to, place);
        place += to - from;
        from = to + 1;
    }
}

// Pads a row of `n_plain` negatives of weight 1, and then those of `extra_weights`, to whole vectors.
inline void pad_row(CatalogRow& row, std::int64_t n_plain, const std::vector<float>& extra_weights, std::vector<float>& tail_weights) {
    constexpr std::int64_t kLanes = 16;  // of the widest variant
    const std::int64_t length = n_plain + static_cast<std::int64_t>(extra_weights.size());
    row.tail = n_plain / kLanes * kLanes;
    row.padded = (length + kLanes - 1) / kLanes * kLanes;
    tail_weights.assign(row.padded - row.tail + kLanes, 0.0f);
    row.total_weight = static_cast<double>(n_plain);
    for (std::int64_t n = row.tail; n < length; ++n) {
        tail_weights[n - row.tail] = n < n_plain ? 1.0f : extra_weights[n - n_plain];
    }
    for (const float weight : extra_weights) row.total_weight += static_cast<double>(weight);
    for (std::int64_t n = length; n < row.padded; ++n) row.scores[n] = row.scores[0];
    row.tail_weights = tail_weights.data();
}

class CatalogWorker {
  public:
    CatalogWorker(std::int64_t n_items, int surrogate, double exponent, double tolerance, std::int64_t first_nodes,
                  const CatalogTables& tables)
        : n_items_(n_items), surrogate_(surrogate), scores_(n_items + 64), scratch_(n_items + 64) {
        row_ = CatalogRow{scores_.data(), 0, 0, nullptr, 0.0, nullptr, 0, nullptr, nullptr, nullptr, exponent, tolerance,
                          first_nodes, scratch_.data(), tables.binomials.data(), tables.log_binomials.data(),
                          tables.lower_binomials.data(), tables.lower_log_binomials.data(), tables.cosines.data()};
    }

    // `weights` and `pair_values` are of the user's positives, or null.
    double run(float* row, const Lists& positives, const Lists& taken, const Lists& extras, double noise, std::int64_t user,
               const float* weights, double* pair_values) {
        const std::int64_t n_positives = positives.size(user), n_taken = taken.size(user);
        const std::int64_t n_extras = noise > 0 ? extras.size(user) : 0;
        const std::int64_t n_plain = n_items_ - n_taken;
        positives_.resize(n_positives);
        positive_gradients_.resize(n_positives);
        for (std::int64_t i = 0; i < n_positives; ++i) positives_[i] = row[positives.begin(user)[i]];
        for_each_gap(taken.begin(user), n_taken, n_items_, [&](std::int64_t from, std::int64_t to, std::int64_t place) {
            std::copy(row + from, row + to, scores_.data() + place);
        });
        for (std::int64_t e = 0; e < n_extras; ++e) scores_[n_plain + e] = row[extras.begin(user)[e]];
        weigh(n_plain, n_extras, noise);
        row_.positives = positives_.data();
        row_.n_positives = n_positives;
        row_.positive_weights = weights;
        row_.positive_gradients = positive_gradients_.data();
        row_.positive_values = pair_values;
        const double value = n_positives > 0 ? rows().catalog_row(surrogate_, row_) : 0.0;
        if (n_positives == 0) std::fill(scores_.begin(), scores_.end(), 0.0f);
        for (std::int64_t t = 0; t < n_taken; ++t) row[taken.begin(user)[t]] = 0.0f;
        for_each_gap(taken.begin(user), n_taken, n_items_, [&](std::int64_t from, std::int64_t to, std::int64_t place) {
            std::copy(scores_.data() + place, scores_.data() + place + (to - from), row + from);
        });
        for (std::int64_t e = 0; e < n_extras; ++e) row[extras.begin(user)[e]] += scores_[n_plain + e];
        for (std::int64_t i = 0; i < n_positives; ++i) row[positives.begin(user)[i]] += positive_gradients_[i];
        return value;
    }

  private:
    void weigh(std::int64_t n_plain, std::int64_t n_extras, double noise) {
        // All draws of the false negatives together are to those of the others as noise to 1 - noise.
        const double weight = n_extras > 0 ? noise * static_cast<double>(n_plain) / ((1.0 - noise) * static_cast<double>(n_extras)) : 0.0;
        extra_weights_.assign(n_extras, static_cast<float>(weight));
        pad_row(row_, n_plain, extra_weights_, tail_weights_);
        // Not the sum of rounded weights.
        row_.total_weight = static_cast<double>(n_plain) + weight * static_cast<double>(n_extras);
    }

    std::int64_t n_items_;
    int surrogate_;
    std::vector<float> scores_, positives_, positive_gradients_, extra_weights_, tail_weights_;
    std::vector<double> scratch_;
    CatalogRow row_{};
};

// `scores` holds the rows of `users` and becomes the gradient of each row's value, sum over its positives of log H. Where
// `pair_weights` are given, the sum is weighted by them, and `pair_values` become log H of each positive; both are laid end to end
// in the order of `users`, and `pair_offsets` say where each user's begin. All three are empty where nothing is weighted.
inline void catalog_rows(int surrogate, double exponent, double tolerance, std::int64_t first_nodes, Array<float, 2> scores,
                         Array<const std::int64_t, 1> users, Array<const std::int64_t, 1> positive_offsets,
                         Array<const std::int32_t, 1> positive_items, Array<const std::int64_t, 1> taken_offsets,
                         Array<const std::int32_t, 1> taken_items, Array<const std::int64_t, 1> extra_offsets,
                         Array<const std::int32_t, 1> extra_items, double noise, Array<double, 1> values,
                         Array<const std::int64_t, 1> pair_offsets, Array<const float, 1> pair_weights,
                         Array<double, 1> pair_values) {
    const auto n_rows = static_cast<std::int64_t>(scores.shape(0));
    const auto n_items = static_cast<std::int64_t>(scores.shape(1));
    const Lists positives{positive_offsets.data(), positive_items.data()};
    const Lists taken{taken_offsets.data(), taken_items.data()};
    const Lists extras{extra_offsets.data(), extra_items.data()};
    const CatalogTables tables(exponent);
    const bool is_weighted = pair_offsets.shape(0) > 0;
#pragma omp parallel
    {
        CatalogWorker worker(n_items, surrogate, exponent, tolerance, first_nodes, tables);
#pragma omp for schedule(dynamic, 2)
        for (std::int64_t row = 0; row < n_rows; ++row) {
            const std::int64_t first = is_weighted ? pair_offsets.data()[row] : 0;
            const float* weights = is_weighted ? pair_weights.data() + first : nullptr;
            double* found = is_weighted ? pair_values.data() + first : nullptr;
            values.data()[row] =
                worker.run(scores.data() + row * n_items, positives, taken, extras, noise, users.data()[row], weights, found);
        }
    }
}

}  // namespace pslrec
