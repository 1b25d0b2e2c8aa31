// Exponential and logarithm in single precision, for one number and for a vector of them; written so that loops over the former
// become vector instructions. The polynomials come from `scripts/fit_polynomials.py`. Included into the namespace of each variant.

#pragma once

#include <cstdint>
#include <cstring>

namespace pslrec::PSLREC_VARIANT {

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr std::int64_t kLanes = kVectorBytes / 4;
typedef float Vector __attribute__((vector_size(kVectorBytes)));
typedef std::int32_t Whole __attribute__((vector_size(kVectorBytes)));

template <typename To, typename From>
inline To same_bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    std::memcpy(&result, &value, sizeof result);
    return result;
}

inline std::int32_t truncated(float value) { return static_cast<std::int32_t>(value); }
inline Whole truncated(Vector value) { return __builtin_convertvector(value, Whole); }
inline float as_float(std::int32_t value) { return static_cast<float>(value); }
inline Vector as_float(Whole value) { return __builtin_convertvector(value, Vector); }

// e^x, exact to 1 unit in the last place or two; below -87.3 it is 0 but for a few denormals, above 88 it stays at e^88.
template <typename V>
inline V exponential(V x) {
    const V low = V{} - 87.3f, high = V{} + 88.0f;
    x = x < low ? low : x;
    x = x > high ? high : x;
    // x = n log 2 + r with |r| <= log 2 / 2; adding and subtracting 1.5 * 2^23 rounds to a whole number.
    const V n = (x * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
    const V r = (x - n * 0.693145751953125f) - n * 1.428606765330187e-6f;
    V p = r * 1.989097981e-4f + 1.393364103e-3f;
    p = p * r + 8.333310936e-3f;
    p = p * r + 4.166646501e-2f;
    p = p * r + 1.666666668e-1f;
    p = p * r + 5.000000013e-1f;
    p = p * r * r + r + 1.0f;
    return p * same_bits<V>((truncated(n) + 127) << 23);
}

// log x for positive, normal x; of anything else, NaN among them, it makes some number.
template <typename V>
inline V logarithm_of(V x) {
    // x = 2^n m with m between sqrt(1/2) and sqrt(2).
    const auto bits = same_bits<decltype(truncated(x))>(x) - 0x3F3504F3;
    const V n = as_float(bits >> 23);
    const V f = same_bits<V>((bits & 0x007FFFFF) + 0x3F3504F3) - 1.0f;
    const V f2 = f * f;
    V p = f * -6.201499890e-2f + 1.053086459e-1f;
    p = p * f - 1.064619166e-1f;
    p = p * f + 1.103778339e-1f;
    p = p * f - 1.245074332e-1f;
    p = p * f + 1.428652455e-1f;
    p = p * f - 1.666800152e-1f;
    p = p * f + 2.000001004e-1f;
    p = p * f - 2.499999028e-1f;
    p = p * f + 3.333333328e-1f;
    // log 2 in two parts, the first of which n can multiply without rounding.
    const V small = f * f2 * p - 0.5f * f2 + n * 1.428606765330187e-6f;
    return f + small + n * 0.693145751953125f;
}

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
