// As many floats at a time as a register of the variant holds, in the compiler's own vector types. Included into the
// namespace of each variant.

#pragma once

#include <cstdint>
#include <cstring>

#include "elementary.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

inline Vector load(const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

inline void store(float* to, Vector value) { std::memcpy(to, &value, sizeof value); }

// Minus 0 changes no number, so it costs nothing; plus 0 would make 0 of -0, and cost an addition.
inline Vector spread(float value) { return value - Vector{}; }

inline Vector larger(Vector left, Vector right) { return left > right ? left : right; }

inline Vector smaller(Vector left, Vector right) { return left < right ? left : right; }

inline double sum_of(Vector value) {
    double sum = 0.0;
    for (int lane = 0; lane < kLanes; ++lane) sum += static_cast<double>(value[lane]);
    return sum;
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
