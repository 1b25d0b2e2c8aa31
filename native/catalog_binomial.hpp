// relu with a whole exponent in closed form, by the binomial theorem.

#pragma once

#include <math.h>

#include <cstdint>

#include "catalog_nodes.hpp"
#include "catalog_vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

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
class BinomialTerms {
  public:
    BinomialTerms(const CatalogRow& row, float highest) : row_(row), k_(static_cast<std::int64_t>(row.exponent)), top_(0.5f + highest) {
        moments(row, top_, k_, moment_);
    }

    // `shares` become what each power of a contributes to the slope, k of them.
    Node evaluate(double x, double* shares) const {
        const double top = static_cast<double>(top_), b = ::fmax(0.5 - x, 0.0);
        const double whole = top + b, alpha = top / whole, beta = b / whole;
        probabilities(k_, alpha, beta, shares);
        double sum = 0.0, slope = 0.0;
        for (std::int64_t m = 0; m <= k_; ++m) sum += shares[m] * moment_[m];
        probabilities(k_ - 1, alpha, beta, shares);
        for (std::int64_t m = 0; m < k_; ++m) slope += shares[m] * moment_[m];
        const double factor = row_.exponent / (whole * sum);
        return Node{x, row_.exponent * ::log(whole) + ::log(sum), factor * slope, factor, whole};
    }

    std::int64_t k() const { return k_; }

  private:
    void probabilities(std::int64_t n, double alpha, double beta, double* out) const {
        const bool is_lower = n < k_;
        if (k_ <= kPowersUpTo) {
            binomial_by_powers(n, alpha, beta, is_lower ? row_.lower_binomials : row_.binomials, out);
        } else {
            binomial(n, alpha, beta, is_lower ? row_.lower_log_binomials : row_.log_binomials, out);
        }
    }

    const CatalogRow& row_;
    std::int64_t k_;
    float top_;
    double moment_[kMostMoments + 1];
};

double binomial_row(const CatalogRow& row, float highest) {
    const BinomialTerms terms(row, highest);
    PositiveNodes positives(row, true);
    double shares[kMostMoments + 1], coefficients[kMostMoments + 1] = {};
    const auto add = [&](const Node& node, double multiplicity) {
        for (std::int64_t m = 0; m < terms.k(); ++m) coefficients[m] += multiplicity * node.factor * shares[m];
    };
    double value = 0.0;
    if (row.tolerance > 0.0 && positives.choose([&](double x) { return terms.evaluate(x, shares); })) {
        value = positives.spread_positives();
        for (std::int64_t r = 0; r < positives.count; ++r) add(terms.evaluate(positives.nodes[r].x, shares), positives.multiplicity[r]);
    } else {
        for (std::int64_t i = 0; i < row.n_positives; ++i) {
            const Node node = terms.evaluate(static_cast<double>(row.positives[i]), shares);
            const double weight = row.weight_of(i);
            row.positive_gradients[i] = static_cast<float>(-weight * node.slope);
            row.note_value(i, node.value);
            value += weight * node.value;
            add(node, weight);
        }
    }
    float single[kMostMoments + 1];
    for (std::int64_t m = 0; m < terms.k(); ++m) single[m] = static_cast<float>(coefficients[m]);
    polynomial(row, single, terms.k() - 1);
    return value;
}

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
