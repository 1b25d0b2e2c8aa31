// The inner loops of `rows.hpp` as this processor can run them. Tests switch to the portable variant.

#pragma once

#include <cstdint>

namespace pslrec {

#define PSLREC_DECLARE_ROWS                                                                                              \
    void scores(const float*, const float*, const std::int32_t*, std::int64_t, std::int64_t, float, float*);             \
    void weighted_sum(const float*, const float*, const std::int32_t*, std::int64_t, std::int64_t, float, float*);       \
    void skip_taken(std::int32_t*, std::int32_t*, std::int64_t, const std::int32_t*, std::int64_t);                      \
    float log_sum(int, float*, std::int64_t, float);

namespace portable {
PSLREC_DECLARE_ROWS
}
#ifdef PSLREC_HAS_AVX2_VARIANT
namespace avx2 {
PSLREC_DECLARE_ROWS
}
#endif

struct Rows {
    decltype(&portable::scores) scores;
    decltype(&portable::weighted_sum) weighted_sum;
    decltype(&portable::skip_taken) skip_taken;
    decltype(&portable::log_sum) log_sum;
};

inline constexpr Rows kPortableRows{portable::scores, portable::weighted_sum, portable::skip_taken, portable::log_sum};

inline bool cpu_has_avx2() {
#ifdef PSLREC_HAS_AVX2_VARIANT
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

inline Rows best_rows() {
#ifdef PSLREC_HAS_AVX2_VARIANT
    if (cpu_has_avx2()) return {avx2::scores, avx2::weighted_sum, avx2::skip_taken, avx2::log_sum};
#endif
    return kPortableRows;
}

inline Rows& rows() {
    static Rows chosen = best_rows();
    return chosen;
}

}  // namespace pslrec
