// What all row operations of exact training share: how to walk through a row. Included into the namespace of each variant.

#pragma once

#include <cstdint>
#include <cstring>

#include "dispatch.hpp"
#include "surrogates.hpp"
#include "vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

constexpr std::int64_t kFlush = 64;        // vectors summed in single precision before the sum goes to a double
constexpr std::int64_t kMostNodes = 64;    // beyond these, every positive is a node of its own
constexpr double kPi = 3.14159265358979323846;

template <typename T>
struct Pack {
    static constexpr int lanes = kVectorBytes / sizeof(T);
    typedef T type __attribute__((vector_size(kVectorBytes)));
};

template <typename T>
inline typename Pack<T>::type load_as(const T* from) {
    typename Pack<T>::type value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// The largest of the scores; padding repeats a real score, so it does no harm.
float largest(const CatalogRow& row) {
    Vector best = load(row.scores);
    for (std::int64_t n = kLanes; n < row.padded; n += kLanes) best = larger(best, load(row.scores + n));
    float value = best[0];
    for (int lane = 1; lane < kLanes; ++lane) value = best[lane] > value ? best[lane] : value;
    return value;
}

float smallest(const CatalogRow& row) {
    Vector best = load(row.scores);
    for (std::int64_t n = kLanes; n < row.padded; n += kLanes) best = smaller(best, load(row.scores + n));
    float value = best[0];
    for (int lane = 1; lane < kLanes; ++lane) value = best[lane] < value ? best[lane] : value;
    return value;
}

// Four sums side by side: one alone would wait for each addition.
double sum_of(const float* values, std::int64_t count) {
    double sums[4] = {};
    std::int64_t n = 0;
    for (; n + 4 <= count; n += 4) {
        for (int part = 0; part < 4; ++part) sums[part] += static_cast<double>(values[n + part]);
    }
    for (; n < count; ++n) sums[0] += static_cast<double>(values[n]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Calls `body(n, weight)` for every vector of the row: weight 1 for the plain ones, the tail's own weights at the end.
template <typename Body>
inline void for_each_vector(const CatalogRow& row, Body body) {
    for (std::int64_t n = 0; n < row.tail; n += kLanes) body(n, spread(1.0f));
    for (std::int64_t n = row.tail; n < row.padded; n += kLanes) body(n, load(row.tail_weights + (n - row.tail)));
}

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
