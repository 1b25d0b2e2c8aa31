// Exponential, logarithm and the surrogates of PSL in single precision, written so that loops over them become vector
// instructions. The polynomials come from `scripts/fit_polynomials.py`. Included by `rows.hpp` into the namespace of each variant.

#pragma once

#include <cstdint>
#include <cstring>

namespace pslrec::PSLREC_VARIANT {

namespace {

inline float from_bits(std::int32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline std::int32_t to_bits(float value) {
    std::int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// e^x, exact to 1 unit in the last place or two; below -87.3 it is 0 but for a few denormals, above 88 it stays at e^88.
inline float exponential(float x) {
    x = x < -87.3f ? -87.3f : x;
    x = x > 88.0f ? 88.0f : x;
    // x = n log 2 + r with |r| <= log 2 / 2; adding and subtracting 1.5 * 2^23 rounds to a whole number.
    const float shifted = x * 1.44269504088896341f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0.693145751953125f) - n * 1.428606765330187e-6f;
    float p = 1.989097981e-4f;
    p = p * r + 1.393364103e-3f;
    p = p * r + 8.333310936e-3f;
    p = p * r + 4.166646501e-2f;
    p = p * r + 1.666666668e-1f;
    p = p * r + 5.000000013e-1f;
    p = p * r * r + r + 1.0f;
    return p * from_bits((static_cast<std::int32_t>(n) + 127) << 23);
}

// log x for positive, normal x; of anything else, NaN among them, it makes some number.
inline float logarithm_of(float x) {
    // x = 2^n m with m between sqrt(1/2) and sqrt(2).
    std::int32_t bits = to_bits(x) - 0x3F3504F3;
    const std::int32_t n = bits >> 23;
    const float m = from_bits((bits & 0x007FFFFF) + 0x3F3504F3);
    const float f = m - 1.0f;
    const float f2 = f * f;
    float p = -6.201499890e-2f;
    p = p * f + 1.053086459e-1f;
    p = p * f - 1.064619166e-1f;
    p = p * f + 1.103778339e-1f;
    p = p * f - 1.245074332e-1f;
    p = p * f + 1.428652455e-1f;
    p = p * f - 1.666800152e-1f;
    p = p * f + 2.000001004e-1f;
    p = p * f - 2.499999028e-1f;
    p = p * f + 3.333333328e-1f;
    const float e = static_cast<float>(n);
    // log 2 in two parts, the first of which n can multiply without rounding.
    const float small = f * f2 * p - 0.5f * f2 + e * 1.428606765330187e-6f;
    return f + small + e * 0.693145751953125f;
}

// atan x on [-2.4, 2.4]: two half-angle steps would cost roots, so one identity, atan x = pi/4 + atan((x - 1) / (x + 1)).
inline float arc_tangent(float x) {
    const float magnitude = x < 0.0f ? -x : x;
    const bool far = magnitude > 0.41421356f;
    const float t = far ? (magnitude - 1.0f) / (magnitude + 1.0f) : magnitude;
    const float z = t * t;
    float p = 5.048138243e-2f;
    p = p * z - 8.624676014e-2f;
    p = p * z + 1.107136500e-1f;
    p = p * z - 1.428415119e-1f;
    p = p * z + 1.999997726e-1f;
    p = p * z - 3.333333328e-1f;
    const float y = (far ? 0.785398163397448f : 0.0f) + (p * z * t + t);
    return x < 0.0f ? -y : y;
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
