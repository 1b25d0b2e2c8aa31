// The positives of one user as a few Chebyshev nodes: a smooth function of the positive's score is evaluated at the nodes alone,
// and each positive is a combination of them. What is left per positive are the Chebyshev polynomials at its score, so a long
// history costs next to nothing.

#pragma once

#include <math.h>

#include <cstdint>

#include "catalog_vectors.hpp"

namespace pslrec::PSLREC_VARIANT {

namespace {

// Everything about one node x: the value that is interpolated, such as log H(x), and its slope -d/dx. A negative of score s adds
// `factor * slope_term` to the gradient, once for each positive that stands at x.
struct Node {
    double x, value, slope, factor, top;  // top = sigma(max s - x)
    // What value and slope were made of, where they are sums: of terms divided by top, and of their slopes divided by k.
    double sum = 0.0, slope_sum = 0.0;
};

class PositiveNodes {
  public:
    // `is_bounded`: scores lie in [-1/2, 1/2].
    PositiveNodes(const CatalogRow& row, bool is_bounded) : row_(row), is_bounded_(is_bounded) { find_interval(); }

    // Chooses as many nodes as it takes and evaluates them; false if the positives themselves are no more.
    template <typename Evaluate>
    bool choose(const Evaluate& evaluate) {
        if (half_ < 1e-7) {
            count = 1;
            nodes[0] = evaluate(middle_);
            return true;
        }
        if (!(half_ < 1e30)) {
            // Comparisons would swallow a score that is not a number; the loss must show it.
            count = 1;
            nodes[0] = Node{half_, half_ - half_, half_ - half_, half_ - half_, half_};
            return true;
        }
        for (count = row_.first_nodes; count <= kMostNodes; count *= 2) {
            if (row_.n_positives <= count) break;
            for (std::int64_t r = 0; r < count; ++r) nodes[r] = evaluate(middle_ + half_ * cosine(1, r));
            if (row_.tolerance <= 0.0 || is_resolved()) return true;
        }
        count = 0;
        return false;
    }

    // Writes the gradients of the positives, fills `multiplicity`, and gives the sum of their values, by their weights.
    double spread_positives() {
        double sums[kMostNodes] = {}, slopes[kMostNodes];
        for (std::int64_t q = 0; q < count; ++q) slopes[q] = coefficient(q, [&](std::int64_t r) { return nodes[r].slope; });
        if (row_.positive_weights == nullptr) {
            polynomials_at_positives(sums, slopes);
        } else {
            polynomials_at_weighted_positives(sums, slopes);
        }
        double value = 0.0;
        for (std::int64_t r = 0; r < count; ++r) {
            multiplicity[r] = sums[0];
            for (std::int64_t q = 1; q < count; ++q) multiplicity[r] += 2.0 * cosine(q, r) * sums[q];
            multiplicity[r] /= static_cast<double>(count);
            value += multiplicity[r] * nodes[r].value;
        }
        return value;
    }

    // The r-th of `count` Chebyshev nodes on [-1, 1] is the cosine of this.
    static double angle(std::int64_t r, std::int64_t count) {
        return kPi * (2.0 * static_cast<double>(r) + 1.0) / (2.0 * static_cast<double>(count));
    }

    std::int64_t count = 0;
    Node nodes[kMostNodes];
    double multiplicity[kMostNodes];  // how many positives each node stands for, or the sum of their weights

  private:
    void find_interval() {
        float low = row_.positives[0], high = low;
        std::int64_t i = 0;
        Vector lows = spread(low), highs = spread(high);
        for (; i + kLanes <= row_.n_positives; i += kLanes) {
            lows = smaller(lows, load(row_.positives + i));
            highs = larger(highs, load(row_.positives + i));
        }
        for (int lane = 0; lane < kLanes; ++lane) {
            low = lows[lane] < low ? lows[lane] : low;
            high = highs[lane] > high ? highs[lane] : high;
        }
        for (; i < row_.n_positives; ++i) {
            low = row_.positives[i] < low ? row_.positives[i] : low;
            high = row_.positives[i] > high ? row_.positives[i] : high;
        }
        middle_ = 0.5 * (static_cast<double>(low) + static_cast<double>(high));
        // 0 unless one of the scores is infinite or not a number.
        const double strange = 0.0 * sum_of(row_.positives, row_.n_positives);
        half_ = 0.5 * (static_cast<double>(high) - static_cast<double>(low)) + strange;
    }

    // T_q at the r-th node; the table has the cosines of pi t / 256.
    double cosine(std::int64_t q, std::int64_t r) const {
        if (128 % count == 0) return row_.cosines[128 / count * q * (2 * r + 1) % 512];
        return ::cos(static_cast<double>(q) * angle(r, count));
    }

    template <typename Value>
    double coefficient(std::int64_t q, const Value& value) const {
        double sum = 0.0;
        for (std::int64_t r = 0; r < count; ++r) sum += cosine(q, r) * value(r);
        return sum * (q == 0 ? 1.0 : 2.0) / static_cast<double>(count);
    }

    // The last two Chebyshev coefficients tell what the ones left out would add.
    bool is_resolved() const {
        double value_tail = 0.0, slope_tail = 0.0, value_size = 1.0, value_least = 1e30, slope_size = 0.0;
        for (std::int64_t q = count - 2; q < count; ++q) {
            value_tail += ::fabs(coefficient(q, [&](std::int64_t r) { return nodes[r].value; }));
            slope_tail += ::fabs(coefficient(q, [&](std::int64_t r) { return nodes[r].slope; }));
        }
        for (std::int64_t r = 0; r < count; ++r) {
            value_size = ::fmax(value_size, ::fabs(nodes[r].value));
            value_least = ::fmin(value_least, ::fabs(nodes[r].value));
            slope_size = ::fmax(slope_size, ::fabs(nodes[r].slope));
        }
        if (!is_bounded_) {
            // Losses of far apart positives are not of one size, and a bend near the end of a long interval, as sharp as the
            // unit of the scores, would stand between the end and the first node unseen.
            value_size = ::fmax(1.0, value_least);
            if (half_ * (1.0 - cosine(1, 0)) > 0.25) return false;
        }
        // A slope may be a hundred times less exact than a value: it only steers.
        return value_tail <= row_.tolerance * value_size && slope_tail <= 100.0 * row_.tolerance * slope_size;
    }

    // Adds T_q of every positive to `sums`, and writes -sum_q slopes[q] T_q as its gradient.
    void polynomials_at_positives(double* sums, const double* slopes) {
        float single[kMostNodes];
        for (std::int64_t q = 0; q < count; ++q) single[q] = static_cast<float>(slopes[q]);
        std::int64_t i = 0;
        while (row_.n_positives - i >= kTogether * kLanes) {
            const std::int64_t rest = (row_.n_positives - i) / (kTogether * kLanes);
            i = vectors_of_polynomials(i, rest < kFlush ? rest : kFlush, single, sums);
        }
        for (; i < row_.n_positives; ++i) {
            const double t = place(static_cast<double>(row_.positives[i]));
            double now = 1.0, before = t, slope = 0.0;
            for (std::int64_t q = 0; q < count; ++q) {
                sums[q] += now;
                slope += slopes[q] * now;
                const double next = 2.0 * t * now - before;
                before = now;
                now = next;
            }
            row_.positive_gradients[i] = static_cast<float>(-slope);
        }
    }

    // The same where positives have weights, and each one's value is asked for. One at a time: beside a row of items it is little.
    void polynomials_at_weighted_positives(double* sums, const double* slopes) {
        double values[kMostNodes];
        for (std::int64_t q = 0; q < count; ++q) values[q] = coefficient(q, [&](std::int64_t r) { return nodes[r].value; });
        for (std::int64_t i = 0; i < row_.n_positives; ++i) {
            const double t = place(static_cast<double>(row_.positives[i])), weight = row_.weight_of(i);
            double now = 1.0, before = t, slope = 0.0, value = 0.0;
            for (std::int64_t q = 0; q < count; ++q) {
                sums[q] += weight * now;
                slope += slopes[q] * now;
                value += values[q] * now;
                const double next = 2.0 * t * now - before;
                before = now;
                now = next;
            }
            row_.positive_gradients[i] = static_cast<float>(-weight * slope);
            row_.note_value(i, value);
        }
    }

    // The recurrence waits for itself, so several vectors of positives go side by side.
    static constexpr std::int64_t kTogether = 4;

    std::int64_t vectors_of_polynomials(std::int64_t from, std::int64_t groups, const float* slopes, double* sums) {
        Vector partial[kMostNodes];
        for (std::int64_t q = 0; q < count; ++q) partial[q] = spread(0.0f);
        const float middle = static_cast<float>(middle_), inverse = half_ > 0.0 ? static_cast<float>(1.0 / half_) : 0.0f;
        const float correction = static_cast<float>(middle_ - static_cast<double>(middle));
        for (; groups > 0; --groups, from += kTogether * kLanes) {
            Vector twice[kTogether], now[kTogether], before[kTogether], slope[kTogether];
            for (std::int64_t v = 0; v < kTogether; ++v) {
                before[v] = ((load(row_.positives + from + v * kLanes) - middle) - correction) * inverse;
                twice[v] = before[v] + before[v];
                now[v] = spread(1.0f);
                slope[v] = spread(0.0f);
            }
            for (std::int64_t q = 0; q < count; ++q) {
                partial[q] += (now[0] + now[1]) + (now[2] + now[3]);
                for (std::int64_t v = 0; v < kTogether; ++v) {
                    slope[v] -= slopes[q] * now[v];
                    const Vector next = twice[v] * now[v] - before[v];
                    before[v] = now[v];
                    now[v] = next;
                }
            }
            for (std::int64_t v = 0; v < kTogether; ++v) store(row_.positive_gradients + from + v * kLanes, slope[v]);
        }
        for (std::int64_t q = 0; q < count; ++q) sums[q] += sum_of(partial[q]);
        return from;
    }

    // Rounding beyond the ends does no harm.
    double place(double score) const { return half_ > 0.0 ? (score - middle_) / half_ : 0.0; }

    const CatalogRow& row_;
    bool is_bounded_;
    double middle_ = 0.0, half_ = 0.0;
};

}  // namespace

}  // namespace pslrec::PSLREC_VARIANT
