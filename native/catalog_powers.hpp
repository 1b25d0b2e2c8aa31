// H(x) = sum_j w_j sigma(s_j - x)^k at one x, for the surrogates that are not interpolated in closed form.

#pragma once

#include <math.h>

#include <cstdint>

#include "catalog_nodes.hpp"
#include "catalog_vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

// A surrogate as the interpolated row sees it: `prepare` does once per item what does not depend on the node; `value` and
// `slope` (of the logarithm) then work on that.
struct TanhNode {
    // 1 + tanh d = 2 q / (q + X) with q = e^(2s), X = e^(2x)
    static Vector prepare(Vector s) { return exponential(s + s); }
    static double prepare(double s) { return ::exp(2.0 * s); }
    static double node(double x) { return ::exp(2.0 * x); }
    template <typename V>
    static V value(V q, V x) {
        return (q + q) / (q + x);
    }
    template <typename V>
    static V slope(V, V, V sigma) {
        return 2.0f - sigma;
    }
};

struct SoftplusNode {
    // 1 + e^d = 1 + q Y with q = e^s, Y = e^-x
    static Vector prepare(Vector s) { return exponential(s); }
    static double prepare(double s) { return ::exp(s); }
    static double node(double x) { return ::exp(-x); }
    template <typename V>
    static V value(V q, V y) {
        return q * y + 1.0f;
    }
    template <typename V>
    static V slope(V q, V y, V sigma) {
        return q * y / sigma;
    }
};

struct ReluNode {
    static Vector prepare(Vector s) { return s; }
    static double prepare(double s) { return s; }
    static double node(double x) { return x; }
    template <typename V>
    static V value(V s, V x) {
        const V raw = (s - x) + 1.0f;
        const V least = raw * 0.0f + 1e-7f;
        return raw < least ? least : raw;
    }
    template <typename V>
    static V slope(V, V, V sigma) {
        const V least = sigma * 0.0f + 1e-7f;
        return sigma <= least ? sigma * 0.0f : 1.0f / sigma;
    }
};

struct AtanNode {
    static Vector prepare(Vector s) { return s; }
    static double prepare(double s) { return s; }
    static double node(double x) { return x; }
    static Vector value(Vector s, Vector x) {
        const Vector d = s - x;
        const Vector z = d * d;
        Vector p = z * -2.116820257e-3f + 1.245880866e-2f;
        p = p * z - 3.422133929e-2f;
        p = p * z + 6.115372719e-2f;
        p = p * z - 8.596068856e-2f;
        p = p * z + 1.101891471e-1f;
        p = p * z - 1.427679398e-1f;
        p = p * z + 1.999965877e-1f;
        p = p * z - 3.333333113e-1f;
        return (p * z * d + d) + 1.0f;
    }
    static Pack<double>::type value(Pack<double>::type s, Pack<double>::type x) {
        Pack<double>::type d = s - x;
        for (int lane = 0; lane < Pack<double>::lanes; ++lane) d[lane] = 1.0 + ::atan(d[lane]);
        return d;
    }
    template <typename V>
    static V slope(V s, V x, V sigma) {
        const V d = s - x;
        return 1.0f / ((d * d + 1.0f) * sigma);
    }
};

inline Vector raised(Vector x, double exponent, std::int32_t whole) {
    if (whole > 0) return power(x, whole);
    return exponential(logarithm_of(x) * static_cast<float>(exponent));
}

inline Pack<double>::type raised(Pack<double>::type x, double exponent, std::int32_t whole) {
    if (whole <= 0) {
        for (int lane = 0; lane < Pack<double>::lanes; ++lane) x[lane] = ::pow(x[lane], exponent);
        return x;
    }
    Pack<double>::type result = x * 0.0 + 1.0;
    for (std::int32_t left = whole; left > 0; left >>= 1, x *= x) {
        if (left & 1) result *= x;
    }
    return result;
}

template <typename T, typename Surrogate>
class PowerTerms {
  public:
    typedef T Number;
    typedef typename Pack<T>::type V;
    static constexpr int kWidth = Pack<T>::lanes;
    static constexpr bool kIsBounded = true;  // scores lie in [-1/2, 1/2]

    PowerTerms(const CatalogRow& row, float highest) : row_(row), highest_(highest), prepared_(static_cast<T*>(row.scratch)) {
        const double k = row.exponent;
        whole_ = k == ::floor(k) && k < 1e6 ? static_cast<std::int32_t>(k) : 0;
        for (std::int64_t n = 0; n < row.padded; n += kWidth) prepare(n);
    }

    V prepared(std::int64_t n) const { return load_as<T>(prepared_ + n); }
    static T prepared_number(double s) { return static_cast<T>(Surrogate::prepare(s)); }

    V slope_term(V q, const Node& node) const {
        const V at = all(Surrogate::node(node.x));
        const V sigma = Surrogate::value(q, at);
        return raised(sigma * all(1.0 / node.top), row_.exponent, whole_) * Surrogate::slope(q, at, sigma);
    }

    // sigma(highest - x), by which terms are divided.
    double top_at(double x) const { return value_at(static_cast<double>(highest_), x); }

    // The powers of the paper's temperatures as constants: without a loop over its bits a power is a few multiplications.
    Node evaluate(double x) const {
        switch (whole_) {
            case 4: return evaluate_with<4>(x);
            case 5: return evaluate_with<5>(x);
            case 7: return evaluate_with<7>(x);
            case 8: return evaluate_with<8>(x);
            case 10: return evaluate_with<10>(x);
            case 20: return evaluate_with<20>(x);
            default: return evaluate_with<0>(x);
        }
    }

  private:
    template <std::int32_t Whole>
    Node evaluate_with(double x) const {
        Node node{x, 0.0, 0.0, 0.0, top_at(x)};
        const V at = all(Surrogate::node(x)), inverse = all(1.0 / node.top);
        double total = 0.0, slopes = 0.0;
        for (std::int64_t n = 0; n < row_.tail; n += kFlush * kWidth) {
            const std::int64_t end = n + kFlush * kWidth < row_.tail ? n + kFlush * kWidth : row_.tail;
            V sum = V{}, slope_sum = V{};
            for (std::int64_t m = n; m < end; m += kWidth) {
                const V q = load_as<T>(prepared_ + m);
                const V sigma = Surrogate::value(q, at);
                const V term = raised(sigma * inverse, row_.exponent, Whole > 0 ? Whole : whole_);
                sum += term;
                slope_sum += term * Surrogate::slope(q, at, sigma);
            }
            add_lanes(sum, slope_sum, total, slopes);
        }
        for (std::int64_t n = row_.tail; n < row_.padded; n += kWidth) {
            const V q = load_as<T>(prepared_ + n);
            const V sigma = Surrogate::value(q, at);
            V term = raised(sigma * inverse, row_.exponent, whole_);
            for (int lane = 0; lane < kWidth; ++lane) term[lane] *= static_cast<T>(row_.tail_weights[n - row_.tail + lane]);
            add_lanes(term, term * Surrogate::slope(q, at, sigma), total, slopes);
        }
        node.factor = row_.exponent / total;
        node.value = row_.exponent * ::log(node.top) + ::log(total);
        node.slope = node.factor * slopes;
        node.sum = total;
        node.slope_sum = slopes;
        return node;
    }

    void prepare(std::int64_t n) {
        if constexpr (sizeof(T) == sizeof(float)) {
            store(prepared_ + n, Surrogate::prepare(load(row_.scores + n)));
        } else {
            for (int lane = 0; lane < kWidth; ++lane) {
                prepared_[n + lane] = Surrogate::prepare(static_cast<double>(row_.scores[n + lane]));
            }
        }
    }

    static V all(double value) { return V{} + static_cast<T>(value); }

    static double value_at(double s, double x) {
        V q = all(Surrogate::prepare(s));
        return static_cast<double>(Surrogate::value(q, all(Surrogate::node(x)))[0]);
    }

    static void add_lanes(V sum, V slope_sum, double& total, double& slopes) {
        for (int lane = 0; lane < kWidth; ++lane) {
            total += static_cast<double>(sum[lane]);
            slopes += static_cast<double>(slope_sum[lane]);
        }
    }

    const CatalogRow& row_;
    float highest_;
    T* prepared_;
    std::int32_t whole_ = 0;
};

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
