// Gaussian directions by counter: the noise of a row depends on its stream alone. Included into the namespace of each variant.

#pragma once

#include <cstdint>

#include "counter_random.hpp"
#include "surrogates.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

constexpr std::int64_t kNoiseBlock = 64;

// Two independent Gaussian numbers, Box and Muller's way, from 24 bits for the radius and 26 for the angle.
inline void gaussian_pair(std::int32_t upper, std::int32_t lower, float& first, float& second) {
    const float share = (static_cast<float>(upper) + 0.5f) * 0x1.0p-24f;
    const float radius = __builtin_sqrtf(-2.0f * logarithm_of(share));
    // An angle between -pi/4 and pi/4, turned by a random number of right angles. The sine and cosine of so small an angle
    // are a few terms of their series.
    const float angle = (static_cast<float>(lower >> 8) + 0.5f) * (0.785398163397448f * 0x1.0p-23f);
    const float square = angle * angle;
    const float sine = angle * (1.0f + square * (-1.0f / 6 + square * (1.0f / 120 + square * (-1.0f / 5040 + square * (1.0f / 362880)))));
    const float cosine = 1.0f + square * (-0.5f + square * (1.0f / 24 + square * (-1.0f / 720 + square * (1.0f / 40320))));
    const float length = (lower & 2) != 0 ? -radius : radius;
    first = length * ((lower & 1) != 0 ? -sine : cosine);
    second = length * ((lower & 1) != 0 ? cosine : sine);
}

}  // namespace

// row += sign(row) * a Gaussian direction of this length. `noise` has room for one number more than the row.
void add_noise(float* row, std::int64_t columns, std::uint64_t stream, float length, float* noise) {
    const std::int64_t n_pairs = (columns + 1) / 2;
    std::int32_t upper[kNoiseBlock], lower[kNoiseBlock];
    for (std::int64_t begin = 0; begin < n_pairs; begin += kNoiseBlock) {
        const std::int64_t count = n_pairs - begin < kNoiseBlock ? n_pairs - begin : kNoiseBlock;
        for (std::int64_t p = 0; p < count; ++p) {
            const std::uint64_t number = number_of(stream, static_cast<std::uint64_t>(begin + p));
            upper[p] = static_cast<std::int32_t>(number >> 40);
            lower[p] = static_cast<std::int32_t>(static_cast<std::uint32_t>(number));
        }
#pragma omp simd
        for (std::int64_t p = 0; p < count; ++p) {
            float first, second;
            gaussian_pair(upper[p], lower[p], first, second);
            noise[begin + p] = first;
            noise[n_pairs + begin + p] = second;
        }
    }
    float squares = 1e-30f;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t c = 0; c < columns; ++c) squares += noise[c] * noise[c];
    const float factor = length / __builtin_sqrtf(squares);
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) {
        const float entry = row[c];
        const float sign = static_cast<float>(entry > 0.0f) - static_cast<float>(entry < 0.0f);
        row[c] = entry + sign * (factor * noise[c]);
    }
}

}  // namespace pslrec::PSLREC_VARIANT
