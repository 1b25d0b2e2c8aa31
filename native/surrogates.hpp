// The surrogates of PSL in single precision, written so that loops over them become vector instructions. The polynomial comes
// from `scripts/fit_polynomials.py`. Included into the namespace of each variant.

#pragma once

#include "elementary.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

// t + t z p(z) for z = t^2, |t| <= 0.4143
template <typename V>
inline V small_arc_tangent(V t) {
    const V z = t * t;
    V p = z * 5.048138243e-2f - 8.624676014e-2f;
    p = p * z + 1.107136500e-1f;
    p = p * z - 1.428415119e-1f;
    p = p * z + 1.999997726e-1f;
    p = p * z - 3.333333328e-1f;
    return p * z * t + t;
}

// atan x on [-2.4, 2.4]: two half-angle steps would cost roots, so one identity, atan x = pi/4 + atan((x - 1) / (x + 1)).
inline float arc_tangent(float x) {
    const float magnitude = x < 0.0f ? -x : x;
    const bool far = magnitude > 0.41421356f;
    const float y = (far ? 0.785398163397448f : 0.0f) + small_arc_tangent(far ? (magnitude - 1.0f) / (magnitude + 1.0f) : magnitude);
    return x < 0.0f ? -y : y;
}

// The same for any x: above 2.4, atan x = pi/2 + atan(-1 / x).
inline Vector arc_tangent(Vector x) {
    const Vector none = Vector{}, one = none + 1.0f;
    const Vector magnitude = x < none ? -x : x;
    const Whole is_far = magnitude > none + 0.41421356f, is_farther = magnitude > none + 2.41421356f;
    const Vector above = is_farther ? -one : (is_far ? magnitude - 1.0f : magnitude);
    const Vector below = is_farther ? magnitude : (is_far ? magnitude + 1.0f : one);
    const Vector offset = is_farther ? none + 1.570796326794897f : (is_far ? none + 0.785398163397448f : none);
    const Vector y = offset + small_arc_tangent(above / below);
    return x < none ? -y : y;
}

// Each surrogate gives log sigma(d) and its derivative, the slope.
struct Exponential {
    static inline float log_value(float d) { return d; }
    static inline float log_value_and_slope(float d, float& slope) {
        slope = 1.0f;
        return d;
    }
};

// 1 + tanh d = 2 / (1 + e^(-2d))
struct Tanh {
    static inline float log_value_and_slope(float d, float& slope) {
        const float e = exponential(-2.0f * d);
        slope = 2.0f * e / (1.0f + e);
        return 0.693147180559945f - logarithm_of(1.0f + e);
    }
    static inline float log_value(float d) {
        float slope;
        return log_value_and_slope(d, slope);
    }
};

struct Atan {
    static inline float log_value_and_slope(float d, float& slope) {
        const float value = 1.0f + arc_tangent(d);
        const float clamped = value < 1e-7f ? 1e-7f : value;
        slope = value < 1e-7f ? 0.0f : 1.0f / ((1.0f + d * d) * clamped);
        return logarithm_of(clamped);
    }
    static inline float log_value(float d) {
        float slope;
        return log_value_and_slope(d, slope);
    }
};

struct Relu {
    static inline float log_value_and_slope(float d, float& slope) {
        const float value = d + 1.0f;
        const float clamped = value < 1e-7f ? 1e-7f : value;
        slope = value < 1e-7f ? 0.0f : 1.0f / clamped;
        return logarithm_of(clamped);
    }
    static inline float log_value(float d) {
        float slope;
        return log_value_and_slope(d, slope);
    }
};

// 1 + e^d; its logarithm is the softplus.
struct Softplus {
    static inline float log_value_and_slope(float d, float& slope) {
        const float e = exponential(d);
        slope = e / (1.0f + e);
        return logarithm_of(1.0f + e);
    }
    static inline float log_value(float d) {
        float slope;
        return log_value_and_slope(d, slope);
    }
};

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
