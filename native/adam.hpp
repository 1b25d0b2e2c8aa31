// Adam on a table whose rows may be brought up to date late: a row that no gradient reaches moves by its momentum alone, and
// what it missed is made up for in one go when it is next asked for.

#pragma once

#include <math.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"

namespace pslrec {

// The numbers of the optimiser, in the order in which Python gives them.
struct AdamRule {
    double rate, decay, first_keep, second_keep, epsilon;

    AdamStep at(std::int64_t step) const {
        const double t = static_cast<double>(step);
        return {static_cast<float>(rate / (1.0 - ::pow(first_keep, t))),
                static_cast<float>(1.0 / ::sqrt(1.0 - ::pow(second_keep, t))),
                static_cast<float>(first_keep),
                static_cast<float>(1.0 - first_keep),
                static_cast<float>(second_keep),
                static_cast<float>(1.0 - second_keep),
                static_cast<float>(epsilon),
                static_cast<float>(decay)};
    }
};

// Tables of the steps that a call may have to make up for, from the oldest to the newest.
class MissedTables {
  public:
    // Beyond so many steps the first moment has shrunk below a ten-millionth: nothing is felt of it in single precision.
    static constexpr std::int64_t kFelt = 160;

    MissedTables(const AdamRule& rule, std::int64_t oldest, std::int64_t now) : rule_(rule), oldest_(oldest) {
        for (std::int64_t t = oldest + 1; t <= now; ++t) steps_.push_back(rule.at(t));
        double first = 1.0, second_root = 1.0;
        for (std::int64_t k = 0; k < std::min(kFelt, now - oldest); ++k) {
            first_powers_.push_back(static_cast<float>(first *= rule.first_keep));
            second_roots_.push_back(static_cast<float>(second_root *= ::sqrt(rule.second_keep)));
        }
    }

    void apply(float* row, float* first, float* second, std::int64_t columns, std::int64_t from, std::int64_t now) const {
        if (rule_.decay > 0.0) {
            for (std::int64_t t = from; t < now; ++t) rows().adam_step(row, first, second, nullptr, columns, steps_[t - oldest_]);
            return;
        }
        float rates[kFelt], shrinks[kFelt];
        const std::int64_t felt = std::min(kFelt, now - from);
        for (std::int64_t k = 0; k < felt; ++k) {
            const AdamStep& step = steps_[from + k - oldest_];
            rates[k] = step.rate * first_powers_[k];
            shrinks[k] = step.shrink * second_roots_[k];
        }
        const double missed = static_cast<double>(now - from);
        const MissedSteps steps{rates, shrinks, felt, static_cast<float>(::pow(rule_.first_keep, missed)),
                                static_cast<float>(::pow(rule_.second_keep, missed))};
        rows().adam_catch_up(row, first, second, columns, steps, static_cast<float>(rule_.epsilon));
    }

  private:
    AdamRule rule_;
    std::int64_t oldest_;
    std::vector<AdamStep> steps_;
    std::vector<float> first_powers_, second_roots_;
};

struct AdamTable {
    float *table, *first, *second;
    std::int32_t* last;  // the step up to which a row is done
    std::int64_t n_rows, columns;
};

inline void check_rows(Array<const std::int64_t, 1> rows, std::int64_t n_rows) {
    for (std::size_t n = 0; n < rows.shape(0); ++n) {
        if (rows.data()[n] < 0 || rows.data()[n] >= n_rows) throw std::out_of_range("a row outside the table");
    }
}

using Table = Array<float, 2>;
using Marks = Array<std::int32_t, 1>;

// Brings rows up to date with step `now` and copies them, divided by their lengths if wanted, into `out`.
inline void adam_fetch(Table table, Table first, Table second, Marks last, Array<const std::int64_t, 1> wanted, std::int64_t now,
                       double rate, double decay, double first_keep, double second_keep, double epsilon, bool is_normalized,
                       Table out) {
    const auto count = static_cast<std::int64_t>(wanted.shape(0)), columns = static_cast<std::int64_t>(table.shape(1));
    check_rows(wanted, static_cast<std::int64_t>(table.shape(0)));
    std::int64_t oldest = now;
    for (std::int64_t n = 0; n < count; ++n) oldest = std::min<std::int64_t>(oldest, last.data()[wanted.data()[n]]);
    const MissedTables missed({rate, decay, first_keep, second_keep, epsilon}, oldest, now);
#pragma omp parallel for schedule(static)
    for (std::int64_t n = 0; n < count; ++n) {
        const std::int64_t row = wanted.data()[n], start = row * columns;
        if (last.data()[row] < now) {
            missed.apply(table.data() + start, first.data() + start, second.data() + start, columns, last.data()[row], now);
            last.data()[row] = static_cast<std::int32_t>(now);
        }
        if (out.shape(0) == 0) continue;
        if (is_normalized) {
            rows().normalized(table.data() + start, columns, out.data() + n * columns);
        } else {
            std::copy(table.data() + start, table.data() + start + columns, out.data() + n * columns);
        }
    }
}

// Step `now` on rows that are up to date with the step before it; `gradient` is used up. `wanted` empty: all rows, whose new
// directions go into `out` if it is not empty.
inline void adam_update(Table table, Table first, Table second, Marks last, Array<const std::int64_t, 1> wanted, Table gradient,
                        std::int64_t now, double rate, double decay, double first_keep, double second_keep, double epsilon,
                        bool is_normalized, Table out) {
    const bool takes_all = wanted.shape(0) == 0;
    const auto count = static_cast<std::int64_t>(gradient.shape(0)), columns = static_cast<std::int64_t>(table.shape(1));
    if (takes_all && count != static_cast<std::int64_t>(table.shape(0))) throw std::invalid_argument("a gradient for every row");
    check_rows(wanted, static_cast<std::int64_t>(table.shape(0)));
    const AdamStep step = AdamRule{rate, decay, first_keep, second_keep, epsilon}.at(now);
#pragma omp parallel for schedule(static)
    for (std::int64_t n = 0; n < count; ++n) {
        const std::int64_t row = takes_all ? n : wanted.data()[n], start = row * columns;
        float* slope = gradient.data() + n * columns;
        if (is_normalized) rows().through_normalization(table.data() + start, slope, columns);
        rows().adam_step(table.data() + start, first.data() + start, second.data() + start, slope, columns, step);
        last.data()[row] = static_cast<std::int32_t>(now);
        if (out.shape(0) != 0) rows().normalized(table.data() + start, columns, out.data() + n * columns);
    }
}

}  // namespace pslrec
