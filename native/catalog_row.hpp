// The row operation of exact training: one user's scores over the whole catalogue go in, its loss comes out, and the scores
// become the gradient. `docs/explanation/exact.md` derives it; the twins are the losses' `catalog_values`. Compiled once per variant.
//
//     H(x) = sum_j w_j sigma(s_j - x)^k        L = sum over the positives i of v_i log H(s_i)
//
// The weights v_i of the positives are 1 unless they are given.

#pragma once

#include <math.h>

#include <cstdint>
#include <type_traits>

#include "catalog_binomial.hpp"
#include "catalog_every_positive.hpp"
#include "catalog_interpolation.hpp"
#include "catalog_mean.hpp"
#include "catalog_vectors.hpp"
#include "dispatch.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

// sigma = exp: log H is a straight line, so one sum serves all positives.
double exponential_row(const CatalogRow& row) {
    const float highest = largest(row), k = static_cast<float>(row.exponent);
    double total = 0.0;
    Vector sum = spread(0.0f);
    std::int64_t pending = 0;
    for_each_vector(row, [&](std::int64_t n, Vector weight) {
        const Vector term = weight * exponential((load(row.scores + n) - highest) * k);
        store(row.scores + n, term);
        sum += term;
        if (++pending == kFlush) {
            total += sum_of(sum);
            sum = spread(0.0f);
            pending = 0;
        }
    });
    total += sum_of(sum);
    const double log_sum = static_cast<double>(highest) * row.exponent + ::log(total);
    double positives = static_cast<double>(row.n_positives), value = 0.0;
    if (row.positive_weights == nullptr) {
        for (std::int64_t i = 0; i < row.n_positives; ++i) row.positive_gradients[i] = -k;
        value = positives * log_sum - row.exponent * sum_of(row.positives, row.n_positives);
    } else {
        positives = sum_of(row.positive_weights, row.n_positives);
        for (std::int64_t i = 0; i < row.n_positives; ++i) {
            const double own = log_sum - row.exponent * static_cast<double>(row.positives[i]);
            row.positive_gradients[i] = -k * row.positive_weights[i];
            row.note_value(i, own);
            value += row.weight_of(i) * own;
        }
    }
    const float factor = static_cast<float>(positives * row.exponent / total);
    for (std::int64_t n = 0; n < row.padded; n += kLanes) store(row.scores + n, load(row.scores + n) * factor);
    return value;
}

constexpr double kSinglePrecisionUpTo = 20.0;

template <typename Surrogate>
double interpolated_row(const CatalogRow& row, float highest) {
    const float lowest = smallest(row);
    // A high power magnifies the rounding of its base; in double precision nothing is seen of it.
    if (row.exponent > kSinglePrecisionUpTo) {
        return InterpolatedRow<PowerTerms<double, Surrogate>>(row, highest, lowest).run();
    }
    return InterpolatedRow<PowerTerms<float, Surrogate>>(row, highest, lowest).run();
}

double relu_row(const CatalogRow& row) {
    // So near to a straight line the kink at the clamp is felt, however large the other terms are.
    if (row.exponent < 2.0) return row_at_every_positive(row, ReluPower{static_cast<float>(row.exponent)});
    const float highest = largest(row);
    float most = -1.0f;
    for (std::int64_t i = 0; i < row.n_positives; ++i) most = row.positives[i] > most ? row.positives[i] : most;
    const bool is_whole = row.exponent == ::floor(row.exponent) && row.exponent <= static_cast<double>(kMostMoments);
    // Where even the largest 1 + d is next to nothing, the clamp at 1e-7 is felt, which the binomial form has not.
    const bool is_clear = 0.5f + highest > 1e-5f && (0.5f + highest) + (0.5f - most) > 1e-4f;
    return is_whole && is_clear ? binomial_row(row, highest) : interpolated_row<ReluNode>(row, highest);
}

// Calls `body` with the terms of an interpolated surrogate, in the precision that its exponent needs.
template <typename Surrogate, typename Body>
void with_power_terms(const CatalogRow& row, Body body) {
    if (row.exponent > kSinglePrecisionUpTo) {
        body(static_cast<PowerTerms<double, Surrogate>*>(nullptr));
    } else {
        body(static_cast<PowerTerms<float, Surrogate>*>(nullptr));
    }
}

template <typename Body>
void with_terms(int surrogate, const CatalogRow& row, Body body) {
    switch (surrogate) {
        case 1: return with_power_terms<TanhNode>(row, body);
        case 2: return with_power_terms<AtanNode>(row, body);
        case 3: return with_power_terms<ReluNode>(row, body);
        default: return with_power_terms<SoftplusNode>(row, body);
    }
}

}  // namespace

// The two phases of a row whose items are divided among processes; see `catalog_phases.hpp`.

void row_moments(const CatalogRow& row, float top, std::int64_t k, double* out) { moments(row, top, k, out); }

void row_polynomial(const CatalogRow& row, float top, const float* coefficients, std::int64_t degree) {
    const Vector inverse = spread(1.0f / top), zero = spread(0.0f), one = spread(1.0f);
    for (std::int64_t n = 0; n < row.padded; n += kLanes) {
        store(row.scores + n, smaller(larger((load(row.scores + n) + 0.5f) * inverse, zero), one));
    }
    polynomial(row, coefficients, degree);
}

void row_node_sums(int surrogate, const CatalogRow& row, float highest, const double* nodes, std::int64_t count, double* sums,
                   double* slopes, double* tops) {
    with_terms(surrogate, row, [&](auto* kind) {
        const std::remove_pointer_t<decltype(kind)> terms(row, highest);
        for (std::int64_t r = 0; r < count; ++r) {
            const Node node = terms.evaluate(nodes[r]);
            sums[r] = node.sum;
            slopes[r] = node.slope_sum;
            tops[r] = node.top;
        }
    });
}

void row_node_gradient(int surrogate, const CatalogRow& row, float highest, const double* nodes, const double* factors,
                       std::int64_t count) {
    const float lowest = smallest(row);
    with_terms(surrogate, row, [&](auto* kind) {
        InterpolatedRow<std::remove_pointer_t<decltype(kind)>>(row, highest, lowest).run_at(nodes, factors, count);
    });
}

// The numbers are those of `OPERATIONS` in `pslrec/kernels/catalog.py`.
double catalog_row(int operation, const CatalogRow& row) {
    const float k = static_cast<float>(row.exponent);
    switch (operation) {
        case 0: return exponential_row(row);
        case 1: return interpolated_row<TanhNode>(row, largest(row));
        case 2: return interpolated_row<AtanNode>(row, largest(row));
        case 3: return relu_row(row);
        case 4: return interpolated_row<SoftplusNode>(row, largest(row));
        case 5: return InterpolatedRow<SoftplusMeanTerms>(row, largest(row), smallest(row)).run();
        case 6: return row_at_every_positive(row, TanhInside{k});
        case 7: return row_at_every_positive(row, ReluInside{k});
        case 8: return row_at_every_positive(row, SoftplusInside{k});
        default: return row_at_every_positive(row, AtanInside{k});
    }
}

}  // namespace pslrec::PSLREC_VARIANT
