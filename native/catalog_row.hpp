// The row operation of exact training: one user's scores over the whole catalogue go in, its loss comes out, and the scores
// become the gradient. `docs/exact.md` derives it; the twin is `pslrec/kernels/catalog.py`. Compiled once per variant.
//
//     H(x) = sum_j w_j sigma(s_j - x)^k        L = sum over the positives i of log H(s_i)

#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>

#include "dispatch.hpp"
#include "surrogates.hpp"
#include "vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

constexpr std::int64_t kFlush = 64;        // vectors summed in single precision before the sum goes to a double
constexpr std::int64_t kMostNodes = 64;    // beyond these, every positive is a node of its own
constexpr std::int64_t kFirstNodes = 8;
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

// Calls `body(n, weight)` for every vector of the row: weight 1 for the plain ones, the tail's own weights at the end.
template <typename Body>
inline void for_each_vector(const CatalogRow& row, Body body) {
    for (std::int64_t n = 0; n < row.tail; n += kLanes) body(n, spread(1.0f));
    for (std::int64_t n = row.tail; n < row.padded; n += kLanes) body(n, load(row.tail_weights + (n - row.tail)));
}

// sigma = exp: log H is a straight line, so one sum serves all positives.
double exponential_row(const CatalogRow& row) {
    const float highest = largest(row), k = static_cast<float>(row.exponent);
    double total = 0.0;
    Vector sum = spread(0.0f);
    std::int64_t pending = 0;
    for_each_vector(row, [&](std::int64_t n, Vector weight) {
        const Vector term = weight * exponential((load(row.scores + n) - highest) * k);
        store(row.scores + n, term);
        sum += term;
        if (++pending == kFlush) {
            total += sum_of(sum);
            sum = spread(0.0f);
            pending = 0;
        }
    });
    total += sum_of(sum);
    const double positives = static_cast<double>(row.n_positives);
    const float factor = static_cast<float>(positives * row.exponent / total);
    for (std::int64_t n = 0; n < row.padded; n += kLanes) store(row.scores + n, load(row.scores + n) * factor);
    double value = positives * (static_cast<double>(highest) * row.exponent + ::log(total));
    for (std::int64_t i = 0; i < row.n_positives; ++i) {
        value -= row.exponent * static_cast<double>(row.positives[i]);
        row.positive_gradients[i] = -k;
    }
    return value;
}

// The binomial probabilities C(n, m) alpha^m beta^(n - m), m = 0 .. n; alpha + beta = 1. `logs` holds log C(n, m).
void binomial(std::int64_t n, double alpha, double beta, const double* logs, double* out) {
    const double log_alpha = ::log(alpha), log_beta = ::log(beta);
    for (std::int64_t m = 0; m <= n; ++m) {
        const double left = m == 0 ? 0.0 : static_cast<double>(m) * log_alpha;
        const double right = m == n ? 0.0 : static_cast<double>(n - m) * log_beta;
        out[m] = ::exp(logs[m] + left + right);
    }
}

// The same for small n without logarithms.
void binomial_by_powers(std::int64_t n, double alpha, double beta, const double* coefficients, double* out) {
    double power = 1.0;
    for (std::int64_t m = 0; m <= n; ++m, power *= alpha) out[m] = coefficients[m] * power;
    power = 1.0;
    for (std::int64_t m = n; m >= 0; --m, power *= beta) out[m] *= power;
}

constexpr std::int64_t kMostMoments = 256;
constexpr std::int64_t kPowersUpTo = 40;

// sum_j w_j t_j^m for m = 0 .. k, with t = (1/2 + s) / scale, four vectors at a time; the scores become t.
void moments(const CatalogRow& row, float scale, std::int64_t k, double* out) {
    for (std::int64_t m = 0; m <= k; ++m) out[m] = 0.0;
    const float inverse = 1.0f / scale;
    Vector sums[kMostMoments + 1];
    for (std::int64_t m = 0; m <= k; ++m) sums[m] = spread(0.0f);
    std::int64_t pending = 0;
    const auto flush = [&] {
        for (std::int64_t m = 0; m <= k; ++m) {
            out[m] += sum_of(sums[m]);
            sums[m] = spread(0.0f);
        }
        pending = 0;
    };
    const auto scaled = [&](std::int64_t n) {
        const Vector t = smaller(larger((load(row.scores + n) + 0.5f) * inverse, spread(0.0f)), spread(1.0f));
        store(row.scores + n, t);
        return t;
    };
    std::int64_t n = 0;
    for (; n + 4 * kLanes <= row.tail; n += 4 * kLanes) {
        const Vector a = scaled(n), b = scaled(n + kLanes), c = scaled(n + 2 * kLanes), d = scaled(n + 3 * kLanes);
        Vector pa = a, pb = b, pc = c, pd = d;
        for (std::int64_t m = 1; m <= k; ++m) {
            sums[m] += (pa + pb) + (pc + pd);
            pa *= a;
            pb *= b;
            pc *= c;
            pd *= d;
        }
        if (++pending == kFlush / 4) flush();
    }
    for (; n < row.padded; n += kLanes) {
        const Vector a = scaled(n);
        Vector power = n < row.tail ? spread(1.0f) : load(row.tail_weights + (n - row.tail));
        for (std::int64_t m = 1; m <= k; ++m) {
            power *= a;
            sums[m] += power;
        }
    }
    flush();
    out[0] = row.total_weight;
}

// The polynomial sum_m coefficients[m] t^m at every score.
void polynomial(const CatalogRow& row, const float* coefficients, std::int64_t degree) {
    std::int64_t n = 0;
    for (; n + 4 * kLanes <= row.tail; n += 4 * kLanes) {
        const Vector a = load(row.scores + n), b = load(row.scores + n + kLanes);
        const Vector c = load(row.scores + n + 2 * kLanes), d = load(row.scores + n + 3 * kLanes);
        Vector pa = spread(coefficients[degree]), pb = pa, pc = pa, pd = pa;
        for (std::int64_t m = degree - 1; m >= 0; --m) {
            const float coefficient = coefficients[m];
            pa = pa * a + coefficient;
            pb = pb * b + coefficient;
            pc = pc * c + coefficient;
            pd = pd * d + coefficient;
        }
        store(row.scores + n, pa);
        store(row.scores + n + kLanes, pb);
        store(row.scores + n + 2 * kLanes, pc);
        store(row.scores + n + 3 * kLanes, pd);
    }
    for (; n < row.padded; n += kLanes) {
        const Vector t = load(row.scores + n);
        Vector p = spread(coefficients[degree]);
        for (std::int64_t m = degree - 1; m >= 0; --m) p = p * t + coefficients[m];
        const Vector weight = n < row.tail ? spread(1.0f) : load(row.tail_weights + (n - row.tail));
        store(row.scores + n, p * weight);
    }
}

// sigma = 1 + d with a whole exponent k: with a = 1/2 + s and b = 1/2 - x, sigma = a + b, and the binomial theorem makes
// H(x) a sum of k + 1 moments of a. Every term is positive: nothing cancels.
double binomial_row(const CatalogRow& row, float highest) {
    const auto k = static_cast<std::int64_t>(row.exponent);
    const float scale = 0.5f + highest;
    double moment[kMostMoments + 1], share[kMostMoments + 1], coefficient[kMostMoments + 1];
    moments(row, scale, k, moment);
    for (std::int64_t m = 0; m < k; ++m) coefficient[m] = 0.0;
    const bool by_powers = k <= kPowersUpTo;
    const double top = static_cast<double>(scale);
    double value = 0.0;
    for (std::int64_t i = 0; i < row.n_positives; ++i) {
        const double b = ::fmax(0.5 - static_cast<double>(row.positives[i]), 0.0);
        const double whole = top + b;
        const double alpha = top / whole, beta = b / whole;
        by_powers ? binomial_by_powers(k, alpha, beta, row.binomials, share) : binomial(k, alpha, beta, row.log_binomials, share);
        double sum = 0.0;
        for (std::int64_t m = 0; m <= k; ++m) sum += share[m] * moment[m];
        value += row.exponent * ::log(whole) + ::log(sum);
        by_powers ? binomial_by_powers(k - 1, alpha, beta, row.lower_binomials, share)
                  : binomial(k - 1, alpha, beta, row.lower_log_binomials, share);
        const double factor = row.exponent / (whole * sum);
        double slope = 0.0;
        for (std::int64_t m = 0; m < k; ++m) {
            slope += share[m] * moment[m];
            coefficient[m] += factor * share[m];
        }
        row.positive_gradients[i] = static_cast<float>(-factor * slope);
    }
    float single[kMostMoments + 1];
    for (std::int64_t m = 0; m < k; ++m) single[m] = static_cast<float>(coefficient[m]);
    polynomial(row, single, k - 1);
    return value;
}

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

// Everything about one node x: log H(x), and the slope -d log H / dx = sum_j w_j g'(s_j - x) / H(x).
struct Node {
    double x, log_value, slope, factor, top;  // top = sigma(max s - x); factor = k / sum of (sigma / top)^k
};

template <typename T, typename Surrogate>
class InterpolatedRow {
  public:
    typedef typename Pack<T>::type V;
    static constexpr int kWidth = Pack<T>::lanes;

    InterpolatedRow(const CatalogRow& row, float highest, float lowest, T* prepared)
        : row_(row), highest_(highest), lowest_(lowest), prepared_(prepared) {
        const double k = row.exponent;
        whole_ = k == ::floor(k) && k < 1e6 ? static_cast<std::int32_t>(k) : 0;
        for (std::int64_t n = 0; n < row.padded; n += kWidth) prepare(n);
        for (std::int64_t n = row.tail; n < row.padded; ++n) row.scores[n] = 0.0f;
    }

    double run() {
        const std::int64_t count = choose_nodes();
        double value = 0.0;
        if (count == 0) {
            value = nodes_at_positives();
        } else {
            value = nodes_between(count);
        }
        write_gradient();
        return value;
    }

  private:
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

    Node evaluate(double x) const {
        Node node{x, 0.0, 0.0, 0.0, value_at(static_cast<double>(highest_), x)};
        const V at = all(Surrogate::node(x)), inverse = all(1.0 / node.top);
        double total = 0.0, slopes = 0.0;
        V sum = V{}, slope_sum = V{};
        std::int64_t pending = 0;
        const auto add = [&](std::int64_t n, V weight) {
            const V q = load_as<T>(prepared_ + n);
            const V sigma = Surrogate::value(q, at);
            const V term = weight * raised(sigma * inverse, row_.exponent, whole_);
            sum += term;
            slope_sum += term * Surrogate::slope(q, at, sigma);
            if (++pending == kFlush) flush(sum, slope_sum, total, slopes, pending);
        };
        for (std::int64_t n = 0; n < row_.tail; n += kWidth) add(n, all(1.0));
        for (std::int64_t n = row_.tail; n < row_.padded; n += kWidth) {
            V weight;
            for (int lane = 0; lane < kWidth; ++lane) weight[lane] = static_cast<T>(row_.tail_weights[n - row_.tail + lane]);
            add(n, weight);
        }
        flush(sum, slope_sum, total, slopes, pending);
        node.factor = row_.exponent / total;
        node.log_value = row_.exponent * ::log(node.top) + ::log(total);
        node.slope = node.factor * slopes;
        return node;
    }

    static void flush(V& sum, V& slope_sum, double& total, double& slopes, std::int64_t& pending) {
        for (int lane = 0; lane < kWidth; ++lane) {
            total += static_cast<double>(sum[lane]);
            slopes += static_cast<double>(slope_sum[lane]);
        }
        sum = V{};
        slope_sum = V{};
        pending = 0;
    }

    // How many Chebyshev nodes it takes, or 0 if the positives themselves are no more; leaves the nodes evaluated.
    std::int64_t choose_nodes() {
        double low = 1e30, high = -1e30;
        for (std::int64_t i = 0; i < row_.n_positives; ++i) {
            const double s = static_cast<double>(row_.positives[i]);
            low = s < low ? s : low;
            high = s > high ? s : high;
        }
        middle_ = 0.5 * (low + high);
        half_ = 0.5 * (high - low);
        if (half_ < 1e-7) {
            nodes_[0] = evaluate(middle_);
            n_nodes_ = 1;
            return 1;
        }
        for (std::int64_t count = row_.first_nodes; count <= kMostNodes; count *= 2) {
            if (row_.n_positives <= count) return 0;
            for (std::int64_t r = 0; r < count; ++r) nodes_[r] = evaluate(middle_ + half_ * ::cos(angle(r, count)));
            n_nodes_ = count;
            if (row_.tolerance <= 0.0 || is_resolved(count)) return count;
        }
        return 0;
    }

    static double angle(std::int64_t r, std::int64_t count) {
        return kPi * (2.0 * static_cast<double>(r) + 1.0) / (2.0 * static_cast<double>(count));
    }

    // The last two Chebyshev coefficients tell what the ones left out would add.
    bool is_resolved(std::int64_t count) const {
        double value_tail = 0.0, slope_tail = 0.0, value_size = 1.0, slope_size = 0.0;
        for (std::int64_t q = count - 2; q < count; ++q) {
            double value = 0.0, slope = 0.0;
            for (std::int64_t r = 0; r < count; ++r) {
                const double basis = ::cos(static_cast<double>(q) * angle(r, count));
                value += basis * nodes_[r].log_value;
                slope += basis * nodes_[r].slope;
            }
            value_tail += ::fabs(value) * 2.0 / static_cast<double>(count);
            slope_tail += ::fabs(slope) * 2.0 / static_cast<double>(count);
        }
        for (std::int64_t r = 0; r < count; ++r) {
            value_size = ::fmax(value_size, ::fabs(nodes_[r].log_value));
            slope_size = ::fmax(slope_size, ::fabs(nodes_[r].slope));
        }
        // A slope may be a hundred times less exact than a value: it only steers.
        return value_tail <= row_.tolerance * value_size && slope_tail <= 100.0 * row_.tolerance * slope_size;
    }

    double nodes_between(std::int64_t count) {
        double weights[kMostNodes], basis[kMostNodes];
        for (std::int64_t r = 0; r < count; ++r) {
            weights[r] = (r % 2 ? -1.0 : 1.0) * ::sin(angle(r, count));
            multiplicity_[r] = 0.0;
        }
        for (std::int64_t i = 0; i < row_.n_positives; ++i) {
            lagrange(static_cast<double>(row_.positives[i]), weights, count, basis);
            double slope = 0.0;
            for (std::int64_t r = 0; r < count; ++r) {
                multiplicity_[r] += basis[r];
                slope += basis[r] * nodes_[r].slope;
            }
            row_.positive_gradients[i] = static_cast<float>(-slope);
        }
        double value = 0.0;
        for (std::int64_t r = 0; r < count; ++r) value += multiplicity_[r] * nodes_[r].log_value;
        return value;
    }

    // The barycentric form, exact at the nodes.
    void lagrange(double s, const double* weights, std::int64_t count, double* basis) const {
        double total = 0.0;
        for (std::int64_t r = 0; r < count; ++r) {
            const double distance = s - nodes_[r].x;
            if (::fabs(distance) < 1e-14) {
                for (std::int64_t other = 0; other < count; ++other) basis[other] = other == r ? 1.0 : 0.0;
                return;
            }
            basis[r] = weights[r] / distance;
            total += basis[r];
        }
        for (std::int64_t r = 0; r < count; ++r) basis[r] /= total;
    }

    double nodes_at_positives() {
        double value = 0.0;
        n_nodes_ = 0;
        if (row_.n_positives > kMostNodes) n_samples_ = kMostSamples;
        for (std::int64_t i = 0; i < row_.n_positives; ++i) {
            const Node node = evaluate(static_cast<double>(row_.positives[i]));
            row_.positive_gradients[i] = static_cast<float>(-node.slope);
            value += node.log_value;
            // More positives than fit are added to the gradient as they come.
            if (n_nodes_ == kMostNodes) {
                add_to_samples();
                add_to_tail();
                n_nodes_ = 0;
            }
            nodes_[n_nodes_] = node;
            multiplicity_[n_nodes_++] = 1.0;
        }
        return value;
    }

    // The gradient of a negative is a smooth function of its score alone, sum_r c_r g'(s - x_r) / H(x_r): sample it at
    // Chebyshev points between the lowest and the highest score, and let every item read it off the series.
    static constexpr std::int64_t kMostSamples = 128;

    double sample_point(std::int64_t p) const {
        const double centre = 0.5 * (static_cast<double>(highest_) + static_cast<double>(lowest_));
        const double radius = 0.5 * (static_cast<double>(highest_) - static_cast<double>(lowest_));
        return centre + radius * ::cos(angle(p, n_samples_));
    }

    void add_to_samples() {
        for (std::int64_t p = 0; p < n_samples_; p += kWidth) {
            V q;
            for (int lane = 0; lane < kWidth; ++lane) {
                q[lane] = static_cast<T>(Surrogate::prepare(sample_point(p + lane)));
            }
            for (std::int64_t r = 0; r < n_nodes_; ++r) {
                const V at = all(Surrogate::node(nodes_[r].x));
                const V sigma = Surrogate::value(q, at);
                const V term = raised(sigma * all(1.0 / nodes_[r].top), row_.exponent, whole_) * Surrogate::slope(q, at, sigma);
                for (int lane = 0; lane < kWidth; ++lane) {
                    samples_[p + lane] += multiplicity_[r] * nodes_[r].factor * static_cast<double>(term[lane]);
                }
            }
        }
    }

    // The few negatives with weights of their own are not read off the series: a large weight would magnify its error.
    void add_to_tail() {
        for (std::int64_t n = row_.tail; n < row_.padded; n += kWidth) {
            const V q = load_as<T>(prepared_ + n);
            for (std::int64_t r = 0; r < n_nodes_; ++r) {
                const V at = all(Surrogate::node(nodes_[r].x));
                const V sigma = Surrogate::value(q, at);
                const V term = raised(sigma * all(1.0 / nodes_[r].top), row_.exponent, whole_) * Surrogate::slope(q, at, sigma);
                for (int lane = 0; lane < kWidth; ++lane) {
                    const double share = multiplicity_[r] * nodes_[r].factor * static_cast<double>(term[lane]);
                    row_.scores[n + lane] += static_cast<float>(share) * row_.tail_weights[n - row_.tail + lane];
                }
            }
        }
    }

    void write_gradient() {
        double coefficients[kMostSamples];
        add_to_tail();
        add_to_samples();
        std::int64_t degree = chebyshev(coefficients);
        if (degree >= n_samples_ - 2 && n_samples_ < kMostSamples) {
            n_samples_ = kMostSamples;
            for (double& sample : samples_) sample = 0.0;
            add_to_samples();
            degree = chebyshev(coefficients);
        }
        clenshaw(coefficients, degree);
    }

    // Coefficients of the samples' series, and how many of them matter to a millionth of the largest sample.
    std::int64_t chebyshev(double* coefficients) const {
        double size = 0.0, left_out = 0.0;
        for (std::int64_t p = 0; p < n_samples_; ++p) size = ::fmax(size, ::fabs(samples_[p]));
        std::int64_t degree = 0;
        const std::int64_t stride = kMostSamples / n_samples_;
        for (std::int64_t q = n_samples_ - 1; q >= 0; --q) {
            double sum = 0.0;
            for (std::int64_t p = 0; p < n_samples_; ++p) {
                sum += samples_[p] * row_.cosines[(stride * q * (2 * p + 1)) % (4 * kMostSamples)];
            }
            coefficients[q] = sum * (q == 0 ? 1.0 : 2.0) / static_cast<double>(n_samples_);
            left_out += ::fabs(coefficients[q]);
            if (degree == 0 && left_out > 1e-6 * size) degree = q;
        }
        return degree;
    }

    void clenshaw(const double* coefficients, std::int64_t degree) {
        float single[kMostSamples];
        for (std::int64_t q = 0; q <= degree; ++q) single[q] = static_cast<float>(coefficients[q]);
        const float centre = 0.5f * (highest_ + lowest_), radius = 0.5f * (highest_ - lowest_);
        const float inverse = radius > 0.0f ? 1.0f / radius : 0.0f;
        const auto series = [&](std::int64_t n) {
            const Vector t = smaller(larger((load(row_.scores + n) - centre) * inverse, spread(-1.0f)), spread(1.0f));
            const Vector twice = t + t;
            Vector next = spread(0.0f), after = spread(0.0f);
            for (std::int64_t q = degree; q >= 1; --q) {
                const Vector now = twice * next - after + single[q];
                after = next;
                next = now;
            }
            return t * next - after + single[0];
        };
        for (std::int64_t n = 0; n < row_.tail; n += kLanes) store(row_.scores + n, series(n));
    }

    const CatalogRow& row_;
    float highest_, lowest_;
    T* prepared_;
    std::int32_t whole_ = 0;
    double middle_ = 0.0, half_ = 0.0;
    std::int64_t n_nodes_ = 0;
    std::int64_t n_samples_ = 32;
    Node nodes_[kMostNodes];
    double multiplicity_[kMostNodes];
    double samples_[kMostSamples] = {};
};

constexpr double kSinglePrecisionUpTo = 20.0;

template <typename Surrogate>
double interpolated_row(const CatalogRow& row, float highest) {
    const float lowest = smallest(row);
    // A high power magnifies the rounding of its base; in double precision nothing is seen of it.
    if (row.exponent > kSinglePrecisionUpTo) {
        return InterpolatedRow<double, Surrogate>(row, highest, lowest, static_cast<double*>(row.scratch)).run();
    }
    return InterpolatedRow<float, Surrogate>(row, highest, lowest, static_cast<float*>(row.scratch)).run();
}

double relu_row(const CatalogRow& row) {
    const float highest = largest(row);
    float most = -1.0f;
    for (std::int64_t i = 0; i < row.n_positives; ++i) most = row.positives[i] > most ? row.positives[i] : most;
    const bool is_whole = row.exponent == ::floor(row.exponent) && row.exponent <= static_cast<double>(kMostMoments);
    // Where even the largest 1 + d is next to nothing, the clamp at 1e-7 is felt, which the binomial form has not.
    const bool is_clear = 0.5f + highest > 1e-5f && (0.5f + highest) + (0.5f - most) > 1e-4f;
    return is_whole && is_clear ? binomial_row(row, highest) : interpolated_row<ReluNode>(row, highest);
}

}  // namespace

double catalog_row(int surrogate, const CatalogRow& row) {
    switch (surrogate) {
        case 0: return exponential_row(row);
        case 1: return interpolated_row<TanhNode>(row, largest(row));
        case 2: return interpolated_row<AtanNode>(row, largest(row));
        case 3: return relu_row(row);
        default: return interpolated_row<SoftplusNode>(row, largest(row));
    }
}

}  // namespace pslrec::PSLREC_VARIANT
