// The inner loops of the variants, and which of them this processor runs. Tests switch between them.

#pragma once

#include <cstdint>

namespace pslrec {

// One user of exact training: the scores of its negatives, close together, and those of its positives.
struct CatalogRow {
    float* scores;              // of the negatives, padded to whole vectors; they become the gradient
    std::int64_t tail;          // from here on a negative has a weight of its own, before it all weigh 1
    std::int64_t padded;        // length with padding, which weighs 0
    const float* tail_weights;  // of scores[tail], scores[tail + 1], ...
    double total_weight;
    const float* positives;
    std::int64_t n_positives;
    const float* positive_weights;  // what multiplies the loss of each positive; null if nothing does
    float* positive_gradients;
    double* positive_values;    // the loss of each positive before its weight; null if nobody asks
    double exponent;            // 1 / temperature
    double tolerance;           // of the interpolation; 0 takes `first_nodes` nodes whatever they give
    std::int64_t first_nodes;
    void* scratch;              // room for `padded` doubles
    const double* binomials;    // C(k, m), their logarithms, and those of k - 1
    const double* log_binomials;
    const double* lower_binomials;
    const double* lower_log_binomials;
    const double* cosines;      // cos(pi t / 256), t = 0 .. 511

    double weight_of(std::int64_t i) const { return positive_weights == nullptr ? 1.0 : static_cast<double>(positive_weights[i]); }

    void note_value(std::int64_t i, double value) const {
        if (positive_values != nullptr) positive_values[i] = value;
    }
};

// One step of Adam, its two bias corrections worked into `rate` and `shrink`.
struct AdamStep {
    float rate, shrink, first_keep, first_take, second_keep, second_take, epsilon, decay;  // take = 1 - keep, before rounding
};

// Steps that a row missed while no gradient reached it.
struct MissedSteps {
    const float* rates;    // of each step that is still felt, times how far the first moment had shrunk by then
    const float* shrinks;  // what the root of the second moment had shrunk to
    std::int64_t n_felt;
    float first_factor, second_factor;  // what all steps leave of the moments
};

// Rows of a tile in a dense product.
constexpr std::int64_t kTileRows = 6;
// Items whose slopes are laid close together before they are multiplied, and users of them at a time. As they lie, the
// slopes of one item are a whole row apart, which is a new page and often the same place in the cache.
constexpr std::int64_t kGatheredItems = 96;
constexpr std::int64_t kGatheredUsers = 256;

#define PSLREC_DECLARE_ROWS                                                                                              \
    void scores(const float*, const float*, const std::int32_t*, std::int64_t, std::int64_t, float, float*);             \
    void weighted_sum(const float*, const float*, const std::int32_t*, std::int64_t, std::int64_t, float, float*);       \
    void skip_taken(std::int32_t*, std::int32_t*, std::int64_t, const std::int32_t*, std::int64_t);                      \
    float log_sum(int, float*, std::int64_t, float);                                                                     \
    double catalog_row(int, const CatalogRow&);                                                                          \
    void row_moments(const CatalogRow&, float, std::int64_t, double*);                                                   \
    void row_polynomial(const CatalogRow&, float, const float*, std::int64_t);                                           \
    void row_node_sums(int, const CatalogRow&, float, const double*, std::int64_t, double*, double*, double*);           \
    void row_node_gradient(int, const CatalogRow&, float, const double*, const double*, std::int64_t);                   \
    void adam_catch_up(float*, float*, float*, std::int64_t, const MissedSteps&, float);                                 \
    void adam_step(float*, float*, float*, const float*, std::int64_t, const AdamStep&);                                 \
    void through_normalization(const float*, float*, std::int64_t);                                                      \
    void normalized(const float*, std::int64_t, float*);                                                                 \
    void add_noise(float*, std::int64_t, std::uint64_t, float, float*);                                                  \
    bool group_maxima(const float*, std::int64_t, float*, std::int64_t);                                                 \
    std::int64_t product_lanes();                                                                                        \
    std::int64_t product_items();                                                                                        \
    void product_scores(const float*, std::int64_t, const float*, std::int64_t, std::int64_t, float, bool, float*,       \
                        float*, std::int64_t);                                                                           \
    void product_users(const float*, std::int64_t, std::int64_t, const float*, std::int64_t, float, float*);             \
    void product_items_of(const float*, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t, float,     \
                          bool, float*, float*);

namespace portable {
PSLREC_DECLARE_ROWS
}
#ifdef PSLREC_HAS_X86_VARIANTS
namespace avx2 {
PSLREC_DECLARE_ROWS
}
namespace avx512 {
PSLREC_DECLARE_ROWS
}
#endif

struct Rows {
    decltype(&portable::scores) scores;
    decltype(&portable::weighted_sum) weighted_sum;
    decltype(&portable::skip_taken) skip_taken;
    decltype(&portable::log_sum) log_sum;
    decltype(&portable::catalog_row) catalog_row;
    decltype(&portable::row_moments) row_moments;
    decltype(&portable::row_polynomial) row_polynomial;
    decltype(&portable::row_node_sums) row_node_sums;
    decltype(&portable::row_node_gradient) row_node_gradient;
    decltype(&portable::adam_catch_up) adam_catch_up;
    decltype(&portable::adam_step) adam_step;
    decltype(&portable::through_normalization) through_normalization;
    decltype(&portable::normalized) normalized;
    decltype(&portable::add_noise) add_noise;
    decltype(&portable::group_maxima) group_maxima;
    decltype(&portable::product_lanes) product_lanes;
    decltype(&portable::product_items) product_items;
    decltype(&portable::product_scores) product_scores;
    decltype(&portable::product_users) product_users;
    decltype(&portable::product_items_of) product_items_of;
};

#define PSLREC_ROWS_OF(variant)                                                                                        \
    {variant::scores,        variant::weighted_sum,      variant::skip_taken,    variant::log_sum,                    \
     variant::catalog_row,   variant::row_moments,       variant::row_polynomial, variant::row_node_sums,             \
     variant::row_node_gradient, variant::adam_catch_up, variant::adam_step,     variant::through_normalization,      \
     variant::normalized,    variant::add_noise,         variant::group_maxima,  variant::product_lanes,              \
     variant::product_items,                                                                                          \
     variant::product_scores, variant::product_users,    variant::product_items_of}

enum class InstructionSet { portable, avx2, avx512 };

// The widest instructions that this processor has and that something was compiled for.
inline InstructionSet widest_instructions() {
#ifdef PSLREC_HAS_X86_VARIANTS
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (has_avx2 && has_avx512) return InstructionSet::avx512;
    if (has_avx2) return InstructionSet::avx2;
#endif
    return InstructionSet::portable;
}

// Those that run. Intel's processors stay with AVX2 until AVX-512 was measured on one: some slow down for it.
inline InstructionSet preferred_instructions() {
    const InstructionSet widest = widest_instructions();
#ifdef PSLREC_HAS_X86_VARIANTS
    if (widest == InstructionSet::avx512 && __builtin_cpu_is("intel")) return InstructionSet::avx2;
#endif
    return widest;
}

inline Rows rows_of(InstructionSet wanted) {
#ifdef PSLREC_HAS_X86_VARIANTS
    if (wanted == InstructionSet::avx512) return PSLREC_ROWS_OF(avx512);
    if (wanted == InstructionSet::avx2) return PSLREC_ROWS_OF(avx2);
#endif
    (void)wanted;
    return PSLREC_ROWS_OF(portable);
}

inline InstructionSet& chosen_instructions() {
    static InstructionSet chosen = preferred_instructions();
    return chosen;
}

inline Rows& rows() {
    static Rows chosen = rows_of(chosen_instructions());
    return chosen;
}

// For tests; asks for no more than the processor has.
inline void use_instructions(InstructionSet wanted) {
    chosen_instructions() = wanted <= widest_instructions() ? wanted : widest_instructions();
    rows() = rows_of(chosen_instructions());
}

}  // namespace pslrec
