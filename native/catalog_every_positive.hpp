// What is not smooth enough to interpolate is evaluated at every positive: the inside form, H(x) = sum_j w_j sigma(k (s_j - x)),
// and relu to a power below 2.

#pragma once

#include <math.h>

#include <cstdint>

#include "catalog_vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

// What a negative adds to H(x), from d = s - x. `shift` is chosen by the largest d so that `value`, the term times e^-shift, neither
// overflows nor vanishes there; `slope` is the derivative of that by d, divided by k.
struct TanhInside {
    float k;

    // 1 + tanh y = 2 e^2y / (1 + e^2y) = 2 / (1 + e^-2y), and its slope is 2 sigma / (1 + e^2y)
    float shift(float most) const { return most < 0.0f ? 2.0f * (most * k) : 0.0f; }
    Vector value(Vector d, float shift, Vector& slope) const {
        const Vector twice = 2.0f * (d * k);
        if (shift < 0.0f) {
            const Vector shifted = exponential(twice - shift);
            const Vector share = 1.0f / (shifted * exponential(shift) + 1.0f);
            const Vector sigma = 2.0f * shifted * share;
            slope = 2.0f * sigma * share;
            return sigma;
        }
        const Vector inverse = exponential(-twice);
        const Vector sigma = 2.0f / (inverse + 1.0f);
        slope = sigma * sigma * inverse;
        return sigma;
    }
};

// 1 + atan y. Not positive below y = -1.557: where a sum is not, its logarithm is no number, and neither is the loss.
struct AtanInside {
    float k;

    float shift(float) const { return 0.0f; }
    Vector value(Vector d, float, Vector& slope) const {
        const Vector y = d * k;
        slope = 1.0f / (y * y + 1.0f);
        return arc_tangent(y) + 1.0f;
    }
};

struct ReluInside {
    float k;

    float shift(float) const { return 0.0f; }
    Vector value(Vector d, float, Vector& slope) const {
        const Vector raw = d * k + 1.0f, least = spread(1e-7f);
        slope = raw < least ? spread(0.0f) : spread(1.0f);
        return raw < least ? least : raw;
    }
};

struct SoftplusInside {
    float k;

    // 1 + e^y
    float shift(float most) const { return most > 0.0f ? most * k : 0.0f; }
    Vector value(Vector d, float shift, Vector& slope) const {
        slope = exponential(d * k - shift);
        return slope + exponential(spread(-shift));
    }
};

// The outside form (1 + d)^k.
struct ReluPower {
    float k;

    float shift(float) const { return 0.0f; }
    Vector value(Vector d, float, Vector& slope) const {
        const Vector raw = d + 1.0f, least = spread(1e-7f);
        const Vector sigma = raw < least ? least : raw;
        const Vector power = exponential(logarithm_of(sigma) * k);
        slope = raw < least ? spread(0.0f) : power / sigma;
        return power;
    }
};

template <typename Term>
double row_at_every_positive(const CatalogRow& row, Term term) {
    const float highest = largest(row);
    float* slopes = static_cast<float*>(row.scratch);
    float* gradient = slopes + row.padded;
    for (std::int64_t n = 0; n < row.padded; n += kLanes) store(gradient + n, spread(0.0f));
    double value = 0.0;
    for (std::int64_t i = 0; i < row.n_positives; ++i) {
        const float x = row.positives[i];
        const float shift = term.shift(highest - x);
        double total = 0.0, slope_total = 0.0;
        Vector sum = spread(0.0f), slope_sum = spread(0.0f);
        std::int64_t pending = 0;
        for_each_vector(row, [&](std::int64_t n, Vector weight) {
            Vector slope;
            sum += weight * term.value(load(row.scores + n) - x, shift, slope);
            slope *= weight;
            store(slopes + n, slope);
            slope_sum += slope;
            if (++pending == kFlush) {
                total += sum_of(sum);
                slope_total += sum_of(slope_sum);
                sum = slope_sum = spread(0.0f);
                pending = 0;
            }
        });
        total += sum_of(sum);
        slope_total += sum_of(slope_sum);
        const double own = static_cast<double>(shift) + ::log(total);
        const double factor = row.weight_of(i) * row.exponent / total;
        value += row.weight_of(i) * own;
        row.note_value(i, own);
        row.positive_gradients[i] = static_cast<float>(-factor * slope_total);
        const Vector scale = spread(static_cast<float>(factor));
        for (std::int64_t n = 0; n < row.padded; n += kLanes) {
            store(gradient + n, load(gradient + n) + scale * load(slopes + n));
        }
    }
    for (std::int64_t n = 0; n < row.padded; n += kLanes) store(row.scores + n, load(gradient + n));
    return value;
}

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
