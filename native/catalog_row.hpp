// The row operation of exact training: one user's scores over the whole catalogue go in, its loss comes out, and the scores
// become the gradient. `docs/exact.md` derives it; the twins are the losses' `catalog_values`. Compiled once per variant.
//
//     H(x) = sum_j w_j sigma(s_j - x)^k        L = sum over the positives i of log H(s_i)

#pragma once

#include <math.h>

#include <cstdint>

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
    const double positives = static_cast<double>(row.n_positives);
    const float factor = static_cast<float>(positives * row.exponent / total);
    for (std::int64_t n = 0; n < row.padded; n += kLanes) store(row.scores + n, load(row.scores + n) * factor);
    double value = positives * (static_cast<double>(highest) * row.exponent + ::log(total));
    for (std::int64_t i = 0; i < row.n_positives; ++i) {
        value -= row.exponent * static_cast<double>(row.positives[i]);
        row.positive_gradients[i] = -k;
    }
    return value;
}

// The binomial probabilities C(n, m) alpha^m beta^(n - m), m = 0 .. n; alpha + beta = 1. `logs` holds log C(n, m).
void binomial(std::int64_t n, double alpha, double beta, const double* logs, double* out) {
    const double log_alpha = ::log(alpha), log_beta = ::log(beta);
    for (std::int64_t m = 0; m <= n; ++m) {
        const double left = m == 0 ? 0.0 : static_cast<double>(m) * log_alpha;
        const double right = m == n ? 0.0 : static_cast<double>(n - m) * log_beta;
        out[m] = ::exp(logs[m] + left + right);
    }
}

// The same for small n without logarithms.
void binomial_by_powers(std::int64_t n, double alpha, double beta, const double* coefficients, double* out) {
    double power = 1.0;
    for (std::int64_t m = 0; m <= n; ++m, power *= alpha) out[m] = coefficients[m] * power;
    power = 1.0;
    for (std::int64_t m = n; m >= 0; --m, power *= beta) out[m] *= power;
}

constexpr std::int64_t kMostMoments = 256;
constexpr std::int64_t kPowersUpTo = 40;

// sum_j w_j t_j^m for m = 0 .. k, with t = (1/2 + s) / scale, four vectors at a time; the scores become t.
void moments(const CatalogRow& row, float scale, std::int64_t k, double* out) {
    for (std::int64_t m = 0; m <= k; ++m) out[m] = 0.0;
    const float inverse = 1.0f / scale;
    Vector sums[kMostMoments + 1];
    for (std::int64_t m = 0; m <= k; ++m) sums[m] = spread(0.0f);
    std::int64_t pending = 0;
    const auto flush = [&] {
        for (std::int64_t m = 0; m <= k; ++m) {
            out[m] += sum_of(sums[m]);
            sums[m] = spread(0.0f);
        }
        pending = 0;
    };
    const auto scaled = [&](std::int64_t n) {
        const Vector t = smaller(larger((load(row.scores + n) + 0.5f) * inverse, spread(0.0f)), spread(1.0f));
        store(row.scores + n, t);
        return t;
    };
    std::int64_t n = 0;
    for (; n + 4 * kLanes <= row.tail; n += 4 * kLanes) {
        const Vector a = scaled(n), b = scaled(n + kLanes), c = scaled(n + 2 * kLanes), d = scaled(n + 3 * kLanes);
        Vector pa = a, pb = b, pc = c, pd = d;
        for (std::int64_t m = 1; m <= k; ++m) {
            sums[m] += (pa + pb) + (pc + pd);
            pa *= a;
            pb *= b;
            pc *= c;
            pd *= d;
        }
        if (++pending == kFlush / 4) flush();
    }
    for (; n < row.padded; n += kLanes) {
        const Vector a = scaled(n);
        Vector power = n < row.tail ? spread(1.0f) : load(row.tail_weights + (n - row.tail));
        for (std::int64_t m = 1; m <= k; ++m) {
            power *= a;
            sums[m] += power;
        }
    }
    flush();
    out[0] = row.total_weight;
}

// The polynomial sum_m coefficients[m] t^m at every score.
void polynomial(const CatalogRow& row, const float* coefficients, std::int64_t degree) {
    std::int64_t n = 0;
    for (; n + 4 * kLanes <= row.tail; n += 4 * kLanes) {
        const Vector a = load(row.scores + n), b = load(row.scores + n + kLanes);
        const Vector c = load(row.scores + n + 2 * kLanes), d = load(row.scores + n + 3 * kLanes);
        Vector pa = spread(coefficients[degree]), pb = pa, pc = pa, pd = pa;
        for (std::int64_t m = degree - 1; m >= 0; --m) {
            const float coefficient = coefficients[m];
            pa = pa * a + coefficient;
            pb = pb * b + coefficient;
            pc = pc * c + coefficient;
            pd = pd * d + coefficient;
        }
        store(row.scores + n, pa);
        store(row.scores + n + kLanes, pb);
        store(row.scores + n + 2 * kLanes, pc);
        store(row.scores + n + 3 * kLanes, pd);
    }
    for (; n < row.padded; n += kLanes) {
        const Vector t = load(row.scores + n);
        Vector p = spread(coefficients[degree]);
        for (std::int64_t m = degree - 1; m >= 0; --m) p = p * t + coefficients[m];
        const Vector weight = n < row.tail ? spread(1.0f) : load(row.tail_weights + (n - row.tail));
        store(row.scores + n, p * weight);
    }
}

// sigma = 1 + d with a whole exponent k: with a = 1/2 + s and b = 1/2 - x, sigma = a + b, and the binomial theorem makes
// H(x) a sum of k + 1 moments of a. Every term is positive: nothing cancels.
double binomial_row(const CatalogRow& row, float highest) {
    const auto k = static_cast<std::int64_t>(row.exponent);
    const float scale = 0.5f + highest;
    double moment[kMostMoments + 1], share[kMostMoments + 1], coefficient[kMostMoments + 1];
    moments(row, scale, k, moment);
    for (std::int64_t m = 0; m < k; ++m) coefficient[m] = 0.0;
    const bool by_powers = k <= kPowersUpTo;
    const double top = static_cast<double>(scale);
    double value = 0.0;
    for (std::int64_t i = 0; i < row.n_positives; ++i) {
        const double b = ::fmax(0.5 - static_cast<double>(row.positives[i]), 0.0);
        const double whole = top + b;
        const double alpha = top / whole, beta = b / whole;
        by_powers ? binomial_by_powers(k, alpha, beta, row.binomials, share) : binomial(k, alpha, beta, row.log_binomials, share);
        double sum = 0.0;
        for (std::int64_t m = 0; m <= k; ++m) sum += share[m] * moment[m];
        value += row.exponent * ::log(whole) + ::log(sum);
        by_powers ? binomial_by_powers(k - 1, alpha, beta, row.lower_binomials, share)
                  : binomial(k - 1, alpha, beta, row.lower_log_binomials, share);
        const double factor = row.exponent / (whole * sum);
        double slope = 0.0;
        for (std::int64_t m = 0; m < k; ++m) {
            slope += share[m] * moment[m];
            coefficient[m] += factor * share[m];
        }
        row.positive_gradients[i] = static_cast<float>(-factor * slope);
    }
    float single[kMostMoments + 1];
    for (std::int64_t m = 0; m < k; ++m) single[m] = static_cast<float>(coefficient[m]);
    polynomial(row, single, k - 1);
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

}  // namespace

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
        default: return row_at_every_positive(row, SoftplusInside{k});
    }
}

}  // namespace pslrec::PSLREC_VARIANT
