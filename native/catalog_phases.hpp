// Exact training where a process has some of the items: the row operation in two phases, with a sum over processes between
// them. The first gives the sums over the own items, the second the gradient in their scores from what the sums have come to.
// Twins: `PowerTerms` and the moments in `pslrec.kernels._torch_terms` and `_torch_operations`.

#pragma once

#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "catalog.hpp"
#include "dispatch.hpp"

namespace pslrec {

// Items that are not negatives of weight 1, by row and then by item; `offsets` say where each row's begin.
struct SpecialItems {
    const std::int64_t* offsets;
    const std::int32_t* items;
    const float* weights;

    std::int64_t size(std::int64_t row) const { return offsets[row + 1] - offsets[row]; }
    const std::int32_t* items_of(std::int64_t row) const { return items + offsets[row]; }
    const float* weights_of(std::int64_t row) const { return weights + offsets[row]; }
};

// A row cut to its negatives: those of weight 1 close together, then those with weights of their own.
class CutRow {
  public:
    CutRow(std::int64_t n_items, double exponent, const CatalogTables& tables)
        : n_items_(n_items), scores_(n_items + 64), scratch_(n_items + 64) {
        row_.scores = scores_.data();
        // The phases know no positives; what reads them finds one.
        row_.positives = &positive_;
        row_.n_positives = 1;
        row_.exponent = exponent;
        row_.scratch = scratch_.data();
        row_.cosines = tables.cosines.data();
    }

    // The row may have no negative here: then sums are 0, and so is the gradient.
    void take(const float* row, const SpecialItems& special, std::int64_t number) {
        const std::int64_t n_special = special.size(number);
        const std::int32_t* items = special.items_of(number);
        const float* weights = special.weights_of(number);
        const std::int64_t n_plain = n_items_ - n_special;
        for_each_gap(items, n_special, n_items_, [&](std::int64_t from, std::int64_t to, std::int64_t place) {
            std::copy(row + from, row + to, scores_.data() + place);
        });
        extra_weights_.clear();
        for (std::int64_t s = 0; s < n_special; ++s) {
            if (weights[s] == 0.0f) continue;
            scores_[n_plain + static_cast<std::int64_t>(extra_weights_.size())] = row[items[s]];
            extra_weights_.push_back(weights[s]);
        }
        pad_row(row_, n_plain, extra_weights_, tail_weights_);
    }

    // Writes what the scores have become; items of weight 0 get 0.
    void put_back(float* row, const SpecialItems& special, std::int64_t number) const {
        const std::int64_t n_special = special.size(number);
        const std::int32_t* items = special.items_of(number);
        const float* weights = special.weights_of(number);
        for_each_gap(items, n_special, n_items_, [&](std::int64_t from, std::int64_t to, std::int64_t place) {
            std::copy(scores_.data() + place, scores_.data() + place + (to - from), row + from);
        });
        std::int64_t place = n_items_ - n_special;
        for (std::int64_t s = 0; s < n_special; ++s) row[items[s]] = weights[s] == 0.0f ? 0.0f : scores_[place++];
    }

    const CatalogRow& row() const { return row_; }

  private:
    std::int64_t n_items_;
    float positive_ = 0.0f;
    std::vector<float> scores_, extra_weights_, tail_weights_;
    std::vector<double> scratch_;
    CatalogRow row_{};
};

template <typename Matrix>
std::int64_t n_rows_of(const Matrix& matrix) {
    return static_cast<std::int64_t>(matrix.shape(0));
}

template <typename Matrix>
std::int64_t n_columns_of(const Matrix& matrix) {
    return static_cast<std::int64_t>(matrix.shape(1));
}

// Calls `body(cut, row)` for every row, in parallel.
template <typename Body>
void for_each_cut_row(const float* scores, std::int64_t n_rows, std::int64_t n_items, const SpecialItems& special, double exponent,
                      Body body) {
    const CatalogTables tables(exponent);
#pragma omp parallel
    {
        CutRow cut(n_items, exponent, tables);
#pragma omp for schedule(dynamic, 2)
        for (std::int64_t row = 0; row < n_rows; ++row) {
            cut.take(scores + row * n_items, special, row);
            body(cut, row);
        }
    }
}

// sum_j w_j t_j^m, m = 1 .. k, of every row, with t = (1/2 + s) / top.
inline void catalog_moments(std::int64_t k, Array<const float, 2> scores, Array<const std::int64_t, 1> offsets,
                            Array<const std::int32_t, 1> items, Array<const float, 1> weights, Array<const float, 1> tops,
                            Array<double, 2> out) {
    const SpecialItems special{offsets.data(), items.data(), weights.data()};
    for_each_cut_row(scores.data(), n_rows_of(scores), n_columns_of(scores), special, static_cast<double>(k), [&](const CutRow& cut, std::int64_t row) {
        double found[257];
        rows().row_moments(cut.row(), tops.data()[row], k, found);
        std::copy(found + 1, found + k + 1, out.data() + row * k);
    });
}

// w_j sum_m coefficients[m] t_j^m in the place of every score.
inline void catalog_polynomials(Array<float, 2> scores, Array<const std::int64_t, 1> offsets, Array<const std::int32_t, 1> items,
                                Array<const float, 1> weights, Array<const float, 1> tops, Array<const float, 2> coefficients) {
    const SpecialItems special{offsets.data(), items.data(), weights.data()};
    const auto k = static_cast<std::int64_t>(coefficients.shape(1));
    const std::int64_t n_items = n_columns_of(scores);
    for_each_cut_row(scores.data(), n_rows_of(scores), n_items, special, static_cast<double>(k), [&](const CutRow& cut, std::int64_t row) {
        rows().row_polynomial(cut.row(), tops.data()[row], coefficients.data() + row * k, k - 1);
        cut.put_back(scores.data() + row * n_items, special, row);
    });
}

// sum_j w_j (sigma(s_j - x) / top)^k at nodes x of every row, its slope divided by k, and top = sigma(highest - x).
inline void catalog_node_sums(int surrogate, double exponent, Array<const float, 2> scores, Array<const std::int64_t, 1> offsets,
                              Array<const std::int32_t, 1> items, Array<const float, 1> weights, Array<const float, 1> highest,
                              Array<const double, 2> nodes, Array<double, 2> sums, Array<double, 2> slopes, Array<double, 2> tops) {
    const SpecialItems special{offsets.data(), items.data(), weights.data()};
    const auto n_nodes = static_cast<std::int64_t>(nodes.shape(1));
    for_each_cut_row(scores.data(), n_rows_of(scores), n_columns_of(scores), special, exponent, [&](const CutRow& cut, std::int64_t row) {
        const std::int64_t first = row * n_nodes;
        rows().row_node_sums(surrogate, cut.row(), highest.data()[row], nodes.data() + first, n_nodes, sums.data() + first,
                             slopes.data() + first, tops.data() + first);
    });
}

// w_j sum over the nodes of factor (sigma / top)^k (log sigma)' for every score, written to `out`.
inline void catalog_node_gradients(int surrogate, double exponent, Array<const float, 2> scores,
                                   Array<const std::int64_t, 1> offsets, Array<const std::int32_t, 1> items,
                                   Array<const float, 1> weights, Array<const float, 1> highest, Array<const double, 2> nodes,
                                   Array<const double, 2> factors, Array<float, 2> out) {
    const SpecialItems special{offsets.data(), items.data(), weights.data()};
    const auto n_nodes = static_cast<std::int64_t>(nodes.shape(1));
    const std::int64_t n_items = n_columns_of(scores);
    for_each_cut_row(scores.data(), n_rows_of(scores), n_items, special, exponent, [&](const CutRow& cut, std::int64_t row) {
        const std::int64_t first = row * n_nodes;
        rows().row_node_gradient(surrogate, cut.row(), highest.data()[row], nodes.data() + first, factors.data() + first, n_nodes);
        cut.put_back(out.data() + row * n_items, special, row);
    });
}

}  // namespace pslrec
