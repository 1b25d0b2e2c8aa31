// As many floats at a time as a register of the variant holds, in the compiler's own vector types. Included into the
// namespace of each variant.

#pragma once

#include <cstdint>
#include <cstring>

namespace pslrec::PSLREC_VARIANT {

namespace {

#ifdef __AVX2__
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr std::int64_t kLanes = kVectorBytes / 4;
typedef float Vector __attribute__((vector_size(kVectorBytes)));
typedef std::int32_t Whole __attribute__((vector_size(kVectorBytes)));

inline Vector load(const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

inline void store(float* to, Vector value) { std::memcpy(to, &value, sizeof value); }

inline Vector spread(float value) { return Vector{} + value; }

inline Vector larger(Vector left, Vector right) { return left > right ? left : right; }

inline Vector smaller(Vector left, Vector right) { return left < right ? left : right; }

inline double sum_of(Vector value) {
    double sum = 0.0;
    for (int lane = 0; lane < kLanes; ++lane) sum += static_cast<double>(value[lane]);
    return sum;
}

// As the functions of the same names in `surrogates.hpp`, which say what they do.
inline Vector exponential(Vector x) {
    x = smaller(larger(x, spread(-87.3f)), spread(88.0f));
    const Vector n = (x * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
    const Vector r = (x - n * 0.693145751953125f) - n * 1.428606765330187e-6f;
    Vector p = r * 1.989097981e-4f + 1.393364103e-3f;
    p = p * r + 8.333310936e-3f;
    p = p * r + 4.166646501e-2f;
    p = p * r + 1.666666668e-1f;
    p = p * r + 5.000000013e-1f;
    p = p * r * r + r + 1.0f;
    const Whole exponent = (__builtin_convertvector(n, Whole) + 127) << 23;
    Vector scale;
    std::memcpy(&scale, &exponent, sizeof scale);
    return p * scale;
}

inline Vector logarithm_of(Vector x) {
    Whole bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits -= 0x3F3504F3;
    const Vector e = __builtin_convertvector(bits >> 23, Vector);
    const Whole mantissa = (bits & 0x007FFFFF) + 0x3F3504F3;
    Vector m;
    std::memcpy(&m, &mantissa, sizeof m);
    const Vector f = m - 1.0f;
    const Vector f2 = f * f;
    Vector p = f * -6.201499890e-2f + 1.053086459e-1f;
    p = p * f - 1.064619166e-1f;
    p = p * f + 1.103778339e-1f;
    p = p * f - 1.245074332e-1f;
    p = p * f + 1.428652455e-1f;
    p = p * f - 1.666800152e-1f;
    p = p * f + 2.000001004e-1f;
    p = p * f - 2.499999028e-1f;
    p = p * f + 3.333333328e-1f;
    return f + (f * f2 * p - 0.5f * f2 + e * 1.428606765330187e-6f) + e * 0.693145751953125f;
}

// x^exponent for a whole exponent of at least 1.
inline Vector power(Vector x, std::int32_t exponent) {
    Vector result = spread(1.0f);
    while (true) {
        if (exponent & 1) result *= x;
        exponent >>= 1;
        if (exponent == 0) return result;
        x *= x;
    }
}

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
