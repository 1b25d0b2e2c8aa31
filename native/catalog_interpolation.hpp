// One user's loss when it is a smooth function of the positive's score: interpolate it between Chebyshev nodes. `Terms` says
// what the function is at a node, and what each negative adds to the gradient there; see `PowerTerms`.

#pragma once

#include <math.h>

#include <cstdint>

#include "catalog_nodes.hpp"
#include "catalog_powers.hpp"
#include "catalog_vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

template <typename Terms>
class InterpolatedRow {
  public:
    typedef typename Terms::Number Number;
    typedef typename Terms::V V;
    static constexpr int kWidth = Terms::kWidth;

    InterpolatedRow(const CatalogRow& row, float highest, float lowest)
        : row_(row), highest_(highest), lowest_(lowest), terms_(row, highest), positives_(row, Terms::kIsBounded) {
        for (std::int64_t n = row.tail; n < row.padded; ++n) row.scores[n] = 0.0f;
    }

    double run() {
        const bool is_between = positives_.choose([this](double x) { return terms_.evaluate(x); });
        const double value = is_between ? positives_.spread_positives() : nodes_at_positives();
        write_gradient();
        return value;
    }

    // The gradient from nodes that were chosen and evaluated elsewhere, at most `kMostNodes`.
    void run_at(const double* places, const double* factors, std::int64_t count) {
        positives_.count = count;
        for (std::int64_t r = 0; r < count; ++r) {
            positives_.nodes[r] = Node{places[r], 0.0, 0.0, factors[r], terms_.top_at(places[r])};
            positives_.multiplicity[r] = 1.0;
        }
        write_gradient();
    }

  private:
    double nodes_at_positives() {
        double value = 0.0;
        is_at_positives_ = true;
        if (row_.n_positives > kMostNodes) n_samples_ = kMostSamples;
        for (std::int64_t i = 0; i < row_.n_positives; ++i) {
            const Node node = terms_.evaluate(static_cast<double>(row_.positives[i]));
            const double weight = row_.weight_of(i);
            row_.positive_gradients[i] = static_cast<float>(-weight * node.slope);
            row_.note_value(i, node.value);
            value += weight * node.value;
            // More positives than fit are added to the gradient as they come.
            if (positives_.count == kMostNodes) {
                add_to_samples();
                add_to_tail();
                positives_.count = 0;
            }
            positives_.nodes[positives_.count] = node;
            positives_.multiplicity[positives_.count++] = weight;
        }
        return value;
    }

    // The gradient of a negative is a smooth function of its score alone, sum_r c_r g'(s - x_r) / H(x_r): sample it at
    // Chebyshev points between the lowest and the highest score, and let every item read it off the series.
    static constexpr std::int64_t kMostSamples = 128;

    double sample_point(std::int64_t p) const {
        const double centre = 0.5 * (static_cast<double>(highest_) + static_cast<double>(lowest_));
        const double radius = 0.5 * (static_cast<double>(highest_) - static_cast<double>(lowest_));
        return centre + radius * ::cos(PositiveNodes::angle(p, n_samples_));
    }

    void add_to_samples() {
        for (std::int64_t p = 0; p < n_samples_; p += kWidth) {
            V q;
            for (int lane = 0; lane < kWidth; ++lane) q[lane] = Terms::prepared_number(sample_point(p + lane));
            for (std::int64_t r = 0; r < positives_.count; ++r) {
                const V term = terms_.slope_term(q, positives_.nodes[r]);
                for (int lane = 0; lane < kWidth; ++lane) {
                    samples_[p + lane] += positives_.multiplicity[r] * positives_.nodes[r].factor * static_cast<double>(term[lane]);
                }
            }
        }
    }

    // The few negatives with weights of their own are not read off the series: a large weight would magnify its error.
    void add_to_tail() {
        for (std::int64_t n = row_.tail; n < row_.padded; n += kWidth) {
            const V q = terms_.prepared(n);
            for (std::int64_t r = 0; r < positives_.count; ++r) {
                const V term = terms_.slope_term(q, positives_.nodes[r]);
                for (int lane = 0; lane < kWidth; ++lane) {
                    const double share = positives_.multiplicity[r] * positives_.nodes[r].factor * static_cast<double>(term[lane]);
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
        if constexpr (!Terms::kIsBounded) {
            if (degree >= n_samples_ - 2) return write_every_gradient();
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
        std::int64_t n = 0;
        // Each step of the recurrence waits for the one before it; several vectors at once fill the gaps.
        for (; n + kTogether * kLanes <= row_.tail; n += kTogether * kLanes) series<kTogether>(n, single, degree, centre, inverse);
        for (; n < row_.tail; n += kLanes) series<1>(n, single, degree, centre, inverse);
    }

    static constexpr int kTogether = 4;

    template <int Count>
    void series(std::int64_t n, const float* coefficients, std::int64_t degree, float centre, float inverse) const {
        Vector t[Count], next[Count] = {}, after[Count] = {};
        for (int v = 0; v < Count; ++v) {
            const Vector scaled = (load(row_.scores + n + v * kLanes) - centre) * inverse;
            t[v] = smaller(larger(scaled, spread(-1.0f)), spread(1.0f));
        }
        for (std::int64_t q = degree; q >= 1; --q) {
            for (int v = 0; v < Count; ++v) {
                const Vector now = (t[v] + t[v]) * next[v] - after[v] + coefficients[q];
                after[v] = next[v];
                next[v] = now;
            }
        }
        for (int v = 0; v < Count; ++v) store(row_.scores + n + v * kLanes, t[v] * next[v] - after[v] + coefficients[0]);
    }

    // Where the scores lie too far apart for a series; such terms do not depend on what was found at the node.
    void write_every_gradient() {
        for (std::int64_t n = 0; n < row_.tail; n += kWidth) {
            const V q = terms_.prepared(n);
            V sum = V{};
            if (is_at_positives_) {
                for (std::int64_t i = 0; i < row_.n_positives; ++i) {
                    const Node node{static_cast<double>(row_.positives[i]), 0.0, 0.0, 0.0, 0.0};
                    sum += terms_.slope_term(q, node) * static_cast<Number>(row_.weight_of(i));
                }
            } else {
                for (std::int64_t r = 0; r < positives_.count; ++r) {
                    sum += terms_.slope_term(q, positives_.nodes[r]) * static_cast<Number>(positives_.multiplicity[r]);
                }
            }
            for (int lane = 0; lane < kWidth; ++lane) {
                row_.scores[n + lane] = static_cast<float>(sum[lane]) * static_cast<float>(positives_.nodes[0].factor);
            }
        }
    }

    const CatalogRow& row_;
    float highest_, lowest_;
    Terms terms_;
    PositiveNodes positives_;
    std::int64_t n_samples_ = 32;
    bool is_at_positives_ = false;
    double samples_[kMostSamples] = {};
};

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
