// BPR at one x: F(x) = sum_j w_j softplus(s_j - x) / sum_j w_j. Scores are inner products, so they may lie anywhere.

#pragma once

#include <math.h>

#include <cstdint>

#include "catalog_nodes.hpp"
#include "catalog_vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

constexpr std::int64_t kFlushLinear = 16;  // large scores, all alike, would round the same way each time

class SoftplusMeanTerms {
  public:
    typedef float Number;
    typedef Vector V;
    static constexpr int kWidth = static_cast<int>(kLanes);
    static constexpr bool kIsBounded = false;

    SoftplusMeanTerms(const CatalogRow& row, float) : row_(row), scores_(static_cast<float*>(row.scratch)) {
        for (std::int64_t n = 0; n < row.padded; n += kLanes) store(scores_ + n, load(row.scores + n));
    }

    Vector prepared(std::int64_t n) const { return load(scores_ + n); }
    static float prepared_number(double s) { return static_cast<float>(s); }

    // sigmoid(s - x)
    Vector slope_term(Vector s, const Node& node) const {
        const Vector d = difference(s, node.x);
        const Vector e = small_exponential(d);
        const Vector share = 1.0f / (e + 1.0f);
        return d > spread(0.0f) ? share : e * share;
    }

    Node evaluate(double x) const {
        double total = 0.0, slopes = 0.0;
        Vector linear = spread(0.0f), product = spread(1.0f), slope_sum = spread(0.0f);
        std::int64_t pending = 0;
        const auto flush = [&] {
            total += sum_of(linear) + sum_of(logarithm_of(product));
            slopes += sum_of(slope_sum);
            linear = slope_sum = spread(0.0f);
            product = spread(1.0f);
            pending = 0;
        };
        // softplus(d) = max(d, 0) + log(1 + e^-|d|): one logarithm does for a product of such factors, none above 2.
        for (std::int64_t n = 0; n < row_.tail; n += kLanes) {
            const Vector d = difference(load(scores_ + n), x), e = small_exponential(d), share = 1.0f / (e + 1.0f);
            linear += larger(d, spread(0.0f));
            product *= e + 1.0f;
            slope_sum += d > spread(0.0f) ? share : e * share;
            if (++pending == kFlushLinear) flush();
        }
        flush();
        for (std::int64_t n = row_.tail; n < row_.padded; n += kLanes) {
            const Vector d = difference(load(scores_ + n), x), e = small_exponential(d), share = 1.0f / (e + 1.0f);
            const Vector weight = load(row_.tail_weights + (n - row_.tail));
            total += sum_of(weight * (larger(d, spread(0.0f)) + logarithm_of(e + 1.0f)));
            slopes += sum_of(weight * (d > spread(0.0f) ? share : e * share));
        }
        const double factor = 1.0 / row_.total_weight;
        return Node{x, factor * total, factor * slopes, factor, 0.0};
    }

  private:
    // x in two parts, so that it is as exact as the scores are.
    static Vector difference(Vector s, double x) {
        const float coarse = static_cast<float>(x);
        return (s - coarse) - static_cast<float>(x - static_cast<double>(coarse));
    }

    static Vector small_exponential(Vector d) { return exponential(smaller(d, -d)); }

    const CatalogRow& row_;
    float* scores_;
};

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
