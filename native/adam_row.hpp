// Adam on one row of a table. `docs/decisions/0008-lazy-adam.md` tells why a row may be brought up to date late.

#include <cstdint>

#include "vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

inline float root_of(float value) { return __builtin_sqrtf(value); }

float dot_of(const float* left, const float* right, std::int64_t columns) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < columns; ++c) sum += left[c] * right[c];
    return sum;
}

// What torch's `normalize` divides by.
float length_of(const float* row, std::int64_t columns) {
    const float length = root_of(dot_of(row, row, columns));
    return length > 1e-12f ? length : 1e-12f;
}

// A piece that stays in registers while the missed steps go by.
constexpr std::int64_t kPiece = 32;

// Without weight decay the moments only shrink, so the missed steps add up to -moment * sum_t rate_t / (root * shrink_t + epsilon).
void catch_up_piece(float* row, float* first, float* second, std::int64_t columns, const MissedSteps& missed, float epsilon) {
    float roots[kPiece] = {}, sums[kPiece] = {};
    for (std::int64_t c = 0; c < columns; ++c) roots[c] = root_of(second[c]);
    for (std::int64_t t = 0; t < missed.n_felt; ++t) {
        const float rate = missed.rates[t], shrink = missed.shrinks[t];
#pragma omp simd
        for (std::int64_t c = 0; c < kPiece; ++c) sums[c] += rate / (roots[c] * shrink + epsilon);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
        row[c] -= first[c] * sums[c];
        first[c] *= missed.first_factor;
        second[c] *= missed.second_factor;
    }
}

}  // namespace

void adam_catch_up(float* row, float* first, float* second, std::int64_t columns, const MissedSteps& missed, float epsilon) {
    for (std::int64_t c = 0; c < columns; c += kPiece) {
        const std::int64_t rest = columns - c < kPiece ? columns - c : kPiece;
        catch_up_piece(row + c, first + c, second + c, rest, missed, epsilon);
    }
}

void adam_step(float* row, float* first, float* second, const float* gradient, std::int64_t columns, const AdamStep& step) {
    const float keep1 = step.first_keep, keep2 = step.second_keep;
    const float take1 = step.first_take, take2 = step.second_take;
    const float rate = step.rate, shrink = step.shrink, epsilon = step.epsilon, decay = step.decay;
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) {
        const float slope = (gradient == nullptr ? 0.0f : gradient[c]) + decay * row[c];
        first[c] = keep1 * first[c] + take1 * slope;
        second[c] = keep2 * second[c] + take2 * slope * slope;
        row[c] -= rate * first[c] / (root_of(second[c]) * shrink + epsilon);
    }
}

// The gradient with respect to a row, from that with respect to the row divided by its length.
void through_normalization(const float* row, float* gradient, std::int64_t columns) {
    const float inverse = 1.0f / length_of(row, columns);
    const float along = dot_of(row, gradient, columns) * inverse * inverse;
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) gradient[c] = (gradient[c] - along * row[c]) * inverse;
}

void normalized(const float* row, std::int64_t columns, float* out) {
    const float inverse = 1.0f / length_of(row, columns);
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) out[c] = row[c] * inverse;
}

}  // namespace pslrec::PSLREC_VARIANT
