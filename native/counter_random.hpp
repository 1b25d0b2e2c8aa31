// Random numbers by counter: a number depends on what it is for, never on what was drawn before it, so threads, resumed
// runs and several processes all see the same ones. The twins are in `pslrec/kernels/negatives.py` and `row_noise.py`.
// The functions are internal to each file that includes them, as one of these is compiled for newer processors.

#pragma once

#include <cstdint>

namespace pslrec {

inline constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15ULL;

// The finaliser known as "variant 13" of the 64-bit avalanche mixers: every bit of the input moves every bit of the output.
static inline std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
    return value ^ (value >> 31);
}

static inline std::uint64_t stream_of(std::uint64_t key, std::uint64_t pair) { return mixed(key + (pair + 1) * kGoldenRatio); }

static inline std::uint64_t number_of(std::uint64_t stream, std::uint64_t draw) { return mixed(stream + (draw + 1) * kGoldenRatio); }

// A whole number from 0 to limit - 1, from the upper half of a random number; the bias is below limit / 2^32.
static inline std::uint32_t below(std::uint64_t number, std::uint32_t limit) {
    return static_cast<std::uint32_t>(((number >> 32) * limit) >> 32);
}

// From 0 to 1, from the lower half, which `below` leaves unused.
static inline double share(std::uint64_t number) { return static_cast<double>(number & 0xFFFFFFFFULL) * 0x1.0p-32; }

}  // namespace pslrec
