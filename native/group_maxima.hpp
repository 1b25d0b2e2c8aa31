// The largest score of every group of columns, in vectors. Included into the namespace of each variant.

#pragma once

#include <cstdint>

#include "vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

// Of some groups side by side, over rounds that all of them have; what is not a number leaves its mark.
template <int Vectors>
inline void maxima_of(const float* scores, std::int64_t n_rounds, std::int64_t n_groups, float* maxima, Whole& odd) {
    Vector best[Vectors];
    for (int v = 0; v < Vectors; ++v) best[v] = spread(-__builtin_inff());
    for (std::int64_t round = 0; round < n_rounds; ++round) {
        for (int v = 0; v < Vectors; ++v) {
            const Vector score = load(scores + round * n_groups + v * kLanes);
            best[v] = larger(score, best[v]);
            odd |= score != score;
        }
    }
    for (int v = 0; v < Vectors; ++v) store(maxima + v * kLanes, best[v]);
}

}  // namespace

// maxima[g] = the largest of scores[g], scores[g + n_groups], ...; false if a score is not a number.
bool group_maxima(const float* scores, std::int64_t n_columns, float* maxima, std::int64_t n_groups) {
    constexpr int kTogether = 4;
    const std::int64_t n_rounds = n_columns / n_groups;
    Whole odd{};
    std::int64_t group = 0;
    for (; group + kTogether * kLanes <= n_groups; group += kTogether * kLanes) {
        maxima_of<kTogether>(scores + group, n_rounds, n_groups, maxima + group, odd);
    }
    for (; group + kLanes <= n_groups; group += kLanes) maxima_of<1>(scores + group, n_rounds, n_groups, maxima + group, odd);
    bool is_odd = false;
    for (int lane = 0; lane < kLanes; ++lane) is_odd |= odd[lane] != 0;
    for (; group < n_groups; ++group) {
        maxima[group] = -__builtin_inff();
        for (std::int64_t round = 0; round < n_rounds; ++round) {
            const float score = scores[round * n_groups + group];
            maxima[group] = score > maxima[group] ? score : maxima[group];
            is_odd |= score != score;
        }
    }
    // The last round does not reach all groups.
    for (std::int64_t column = n_rounds * n_groups; column < n_columns; ++column) {
        float& best = maxima[column - n_rounds * n_groups];
        best = scores[column] > best ? scores[column] : best;
        is_odd |= scores[column] != scores[column];
    }
    return !is_odd;
}

}  // namespace pslrec::PSLREC_VARIANT
