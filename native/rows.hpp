// The inner loops, on bare pointers. `rows_portable.cpp`, `rows_avx2.cpp` and `rows_avx512.cpp` compile this same file for different
// processors, each in a namespace of its own; `dispatch.hpp` chooses one when the program runs.
//
// Plain loops that a compiler turns into vector instructions; no intrinsics. Nothing here may call an inline function of
// the standard library: the linker would keep one copy of it, perhaps one that needs wide instructions.

#include <cstdint>
#include <cstring>

#include "surrogates.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

// The number of columns as a constant lets the compiler unroll; 0 stands for "known only at run time".
template <int Columns>
inline std::int64_t columns_of(std::int64_t columns) {
    return Columns > 0 ? Columns : columns;
}

template <int Columns>
inline float dot(const float* left, const float* right, std::int64_t columns) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < columns_of<Columns>(columns); ++c) sum += left[c] * right[c];
    return sum;
}

inline void prefetch_row(const float* row, std::int64_t columns) {
    for (std::int64_t c = 0; c < columns; c += 16) __builtin_prefetch(row + c);
}

constexpr std::int64_t kAhead = 6;  // rows to ask for before they are needed; by measurement

template <int Columns>
void scores_of_row(const float* user, const float* items, const std::int32_t* ids, std::int64_t count,
                   std::int64_t columns, float scale, float* scores) {
    for (std::int64_t n = 0; n < count; ++n) {
        if (n + kAhead < count) prefetch_row(items + ids[n + kAhead] * columns, columns);
        scores[n] = scale * dot<Columns>(user, items + ids[n] * columns, columns);
    }
}

// sum_n factors[n] * table[ids[n]] for a block of columns that fits the registers.
constexpr std::int64_t kBlock = 64;

void weighted_sum_of_block(const float* factors, const float* table, const std::int32_t* ids, std::int64_t count,
                           std::int64_t columns, float scale, float* out) {
    float sum[kBlock] = {};
    for (std::int64_t n = 0; n < count; ++n) {
        if (n + kAhead < count) prefetch_row(table + ids[n + kAhead] * columns, kBlock);
        const float factor = factors[n];
        const float* row = table + ids[n] * columns;
#pragma omp simd
        for (std::int64_t c = 0; c < kBlock; ++c) sum[c] += factor * row[c];
    }
#pragma omp simd
    for (std::int64_t c = 0; c < kBlock; ++c) out[c] = scale * sum[c];
}

void weighted_sum_of_rest(const float* factors, const float* table, const std::int32_t* ids, std::int64_t count,
                          std::int64_t columns, std::int64_t rest, float scale, float* out) {
    float sum[kBlock] = {};
    for (std::int64_t n = 0; n < count; ++n) {
        const float factor = factors[n];
        const float* row = table + ids[n] * columns;
#pragma omp simd
        for (std::int64_t c = 0; c < rest; ++c) sum[c] += factor * row[c];
    }
    for (std::int64_t c = 0; c < rest; ++c) out[c] = scale * sum[c];
}

}  // namespace

#define PSLREC_BY_COLUMNS(function, ...)                    \
    switch (columns) {                                      \
        case 32: return function<32>(__VA_ARGS__);          \
        case 64: return function<64>(__VA_ARGS__);          \
        case 128: return function<128>(__VA_ARGS__);        \
        case 256: return function<256>(__VA_ARGS__);        \
        default: return function<0>(__VA_ARGS__);           \
    }

void scores(const float* user, const float* items, const std::int32_t* ids, std::int64_t count, std::int64_t columns,
            float scale, float* out) {
    PSLREC_BY_COLUMNS(scores_of_row, user, items, ids, count, columns, scale, out)
}

// scale * sum_n factors[n] * table[ids[n]]
void weighted_sum(const float* factors, const float* table, const std::int32_t* ids, std::int64_t count,
                  std::int64_t columns, float scale, float* out) {
    std::int64_t c = 0;
    for (; c + kBlock <= columns; c += kBlock) {
        weighted_sum_of_block(factors, table + c, ids, count, columns, scale, out + c);
    }
    if (c < columns) weighted_sum_of_rest(factors, table + c, ids, count, columns, columns - c, scale, out + c);
}

// Turns ranks among the items that are not in the sorted list `taken` into items: an item moves up by one for each taken
// item that stands before it. Short lists are walked through with all ranks at once, long ones searched.
void skip_taken(std::int32_t* ranks, std::int32_t* items, std::int64_t count, const std::int32_t* taken, std::int64_t n_taken) {
    constexpr std::int64_t kShort = 256;
    for (std::int64_t n = 0; n < count; ++n) items[n] = ranks[n];
    if (n_taken <= kShort) {
        for (std::int64_t t = 0; t < n_taken; ++t) {
            const std::int32_t gap = taken[t] - static_cast<std::int32_t>(t);
#pragma omp simd
            for (std::int64_t n = 0; n < count; ++n) items[n] += gap <= ranks[n];
        }
        return;
    }
    for (std::int64_t n = 0; n < count; ++n) {
        std::int64_t low = 0, high = n_taken;
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            if (taken[middle] - middle <= ranks[n]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        items[n] += static_cast<std::int32_t>(low);
    }
}

// log sum over the negatives of sigma(negative - positive)^exponent. `scores[0]` is the positive's score, the others are its
// negatives'. On return `scores` holds the gradient with respect to each of them. NaN if any score is NaN or infinite.
template <typename Surrogate>
float log_sum_of_row(float* scores, std::int64_t count, float exponent) {
    const float positive = scores[0];
    // Neither the comparisons nor `logarithm_of` let a NaN through, so it is carried along: 0 * x is 0 for every number.
    float highest = -3.0e38f, not_a_number = 0.0f;
#pragma omp simd reduction(max : highest) reduction(+ : not_a_number)
    for (std::int64_t n = 1; n < count; ++n) {
        const float difference = scores[n] - positive;
        highest = difference > highest ? difference : highest;
        not_a_number += 0.0f * difference;
    }
    // Every surrogate rises, so the largest term is that of the largest difference.
    const float offset = Surrogate::log_value(highest) * exponent;
    float sum = 0.0f, slope_sum = 0.0f;
#pragma omp simd reduction(+ : sum, slope_sum)
    for (std::int64_t n = 1; n < count; ++n) {
        const float difference = scores[n] - positive;
        float slope;
        const float logarithm = Surrogate::log_value_and_slope(difference, slope);
        const float term = exponential(logarithm * exponent - offset);
        const float weighted = term * slope;
        sum += term;
        slope_sum += weighted;
        scores[n] = weighted;
    }
    const float factor = exponent / sum;
#pragma omp simd
    for (std::int64_t n = 1; n < count; ++n) scores[n] *= factor;
    scores[0] = -slope_sum * factor;
    return offset + logarithm_of(sum) + not_a_number;
}

float log_sum(int surrogate, float* scores, std::int64_t count, float exponent) {
    switch (surrogate) {
        case 0: return log_sum_of_row<Exponential>(scores, count, exponent);
        case 1: return log_sum_of_row<Tanh>(scores, count, exponent);
        case 2: return log_sum_of_row<Atan>(scores, count, exponent);
        case 3: return log_sum_of_row<Relu>(scores, count, exponent);
        default: return log_sum_of_row<Softplus>(scores, count, exponent);
    }
}

}  // namespace pslrec::PSLREC_VARIANT
