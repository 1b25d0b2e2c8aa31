// One elastic net per item: how much each of its candidates says about it, by coordinate descent on the counts of
// common users. Twin: `pslrec.kernels._elastic_nets.elastic_nets_plainly`.
// An item is solved by one thread, so the weights do not depend on the number of threads.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"

namespace pslrec::elastic_nets {

namespace nb = nanobind;

// Rows of counts that are kept with all their zeros may take so much.
constexpr std::int64_t TABLE_BYTES = 256 * 1024 * 1024;
// What has fewer entries than this share of a row is found quickly enough without.
constexpr std::int64_t SPARSEST_SHARE = 32;

// Users that each pair of items has in common; symmetric.
struct Counts {
    const std::int64_t* offsets;
    const std::int32_t* columns;
    const float* values;
    // Users of each item.
    const float* sizes;
    std::int64_t n_items;

    std::int64_t length(std::int64_t row) const { return offsets[row + 1] - offsets[row]; }
};

struct Penalties {
    float l1;
    float l2;
    bool non_negative;
    float tolerance;
    std::int64_t most_sweeps;

    // The best weight of a candidate while those of all others stay.
    float best(float pull, float size) const {
        if (pull > l1) return (pull - l1) / (size + l2);
        if (!non_negative && pull < -l1) return (pull + l1) / (size + l2);
        return 0.0f;
    }
};

// The fullest rows of the counts with their zeros: from these, the counts of a few candidates are read directly.
class FullRows {
public:
    explicit FullRows(const Counts& counts) : n_items_(counts.n_items), places_(counts.n_items, -1) {
        std::vector<std::int32_t> chosen;
        for (std::int64_t row = 0; row < n_items_; ++row) {
            if (counts.length(row) * SPARSEST_SHARE > n_items_) chosen.push_back(static_cast<std::int32_t>(row));
        }
        const std::int64_t most = TABLE_BYTES / (static_cast<std::int64_t>(sizeof(float)) * std::max<std::int64_t>(n_items_, 1));
        if (static_cast<std::int64_t>(chosen.size()) > most) {
            std::nth_element(chosen.begin(), chosen.begin() + most, chosen.end(),
                             [&](std::int32_t one, std::int32_t other) { return counts.length(one) > counts.length(other); });
            chosen.resize(static_cast<std::size_t>(most));
        }
        table_.resize(chosen.size() * static_cast<std::size_t>(n_items_));
        for (std::size_t place = 0; place < chosen.size(); ++place) {
            const std::int32_t row = chosen[place];
            places_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(place);
            float* full = table_.data() + place * static_cast<std::size_t>(n_items_);
            for (std::int64_t entry = counts.offsets[row]; entry < counts.offsets[row + 1]; ++entry)
                full[counts.columns[entry]] = counts.values[entry];
        }
    }

    // Null if the row is not among them.
    const float* row(std::int32_t item) const {
        const std::int32_t place = places_[static_cast<std::size_t>(item)];
        if (place < 0) return nullptr;
        return table_.data() + static_cast<std::int64_t>(place) * n_items_;
    }

private:
    std::int64_t n_items_;
    std::vector<std::int32_t> places_;
    std::vector<float> table_;
};

// Solves one item after the other; what it allocates is used again.
class Solver {
public:
    Solver(const Counts& counts, const FullRows& full_rows, const Penalties& penalties)
        : counts_(counts), full_rows_(full_rows), penalties_(penalties), places_(counts.n_items, -1) {}

    // Writes the weight of each candidate.
    void solve(std::int64_t item, const std::int32_t* candidates, std::int64_t n_candidates, float* weights) {
        candidates_ = candidates;
        n_candidates_ = n_candidates;
        weights_ = weights;
        for (std::int64_t place = 0; place < n_candidates; ++place) {
            places_[static_cast<std::size_t>(candidates[place])] = static_cast<std::int32_t>(place);
            weights[place] = 0.0f;
        }
        slopes_.assign(static_cast<std::size_t>(n_candidates), 0.0f);
        read_row(item, slopes_.data());
        rows_.clear();
        rows_of_.assign(static_cast<std::size_t>(n_candidates), -1);
        descend();
        for (std::int64_t place = 0; place < n_candidates; ++place)
            places_[static_cast<std::size_t>(candidates[place])] = -1;
    }

private:
    // All candidates in turn, then again and again those with a weight, until no weight moves; then all once more.
    void descend() {
        std::int64_t n_sweeps = 0;
        while (n_sweeps < penalties_.most_sweeps) {
            float largest_move = 0.0f;
            active_.clear();
            for (std::int64_t place = 0; place < n_candidates_; ++place) {
                largest_move = std::max(largest_move, step(place));
                if (weights_[place] != 0.0f) active_.push_back(place);
            }
            ++n_sweeps;
            if (largest_move < penalties_.tolerance) return;
            while (n_sweeps < penalties_.most_sweeps) {
                largest_move = 0.0f;
                for (const std::int64_t place : active_) largest_move = std::max(largest_move, step(place));
                ++n_sweeps;
                if (largest_move < penalties_.tolerance) break;
            }
        }
    }

    // Returns how far the weight has moved.
    float step(std::int64_t place) {
        const float size = counts_.sizes[candidates_[place]];
        const float before = weights_[place];
        const float after = penalties_.best(slopes_[static_cast<std::size_t>(place)] + size * before, size);
        const float move = after - before;
        if (move == 0.0f) return 0.0f;
        weights_[place] = after;
        const float* row = row_of(place);
        float* slopes = slopes_.data();
#pragma omp simd
        for (std::int64_t other = 0; other < n_candidates_; ++other) slopes[other] -= move * row[other];
        return std::fabs(move);
    }

    // What a candidate has in common with each candidate; most never get a weight, so it is read when it is needed.
    const float* row_of(std::int64_t place) {
        std::int64_t& row = rows_of_[static_cast<std::size_t>(place)];
        if (row < 0) {
            row = static_cast<std::int64_t>(rows_.size());
            rows_.resize(rows_.size() + static_cast<std::size_t>(n_candidates_), 0.0f);
            read_row(candidates_[place], rows_.data() + row);
        }
        return rows_.data() + row;
    }

    // The counts of an item with each candidate, to where zeros stand.
    void read_row(std::int64_t item, float* to) const {
        const float* full = full_rows_.row(static_cast<std::int32_t>(item));
        if (full != nullptr && counts_.length(item) > n_candidates_) {
            for (std::int64_t place = 0; place < n_candidates_; ++place) to[place] = full[candidates_[place]];
            return;
        }
        for (std::int64_t entry = counts_.offsets[item]; entry < counts_.offsets[item + 1]; ++entry) {
            const std::int32_t place = places_[static_cast<std::size_t>(counts_.columns[entry])];
            if (place >= 0) to[place] = counts_.values[entry];
        }
    }

    const Counts& counts_;
    const FullRows& full_rows_;
    const Penalties& penalties_;
    // Of every item among the candidates; -1 if it is none.
    std::vector<std::int32_t> places_;
    const std::int32_t* candidates_ = nullptr;
    std::int64_t n_candidates_ = 0;
    float* weights_ = nullptr;
    // How fast the error falls with each weight.
    std::vector<float> slopes_;
    std::vector<float> rows_;
    std::vector<std::int64_t> rows_of_;
    std::vector<std::int64_t> active_;
};

inline void solve(Array<const std::int64_t, 1> offsets, Array<const std::int32_t, 1> columns, Array<const float, 1> values,
                  Array<const float, 1> sizes, Array<const std::int64_t, 1> candidate_offsets,
                  Array<const std::int32_t, 1> candidates, float l1, float l2, bool non_negative, float tolerance,
                  std::int64_t most_sweeps, Array<float, 1> weights) {
    const auto n_items = static_cast<std::int64_t>(sizes.shape(0));
    const bool fits = static_cast<std::int64_t>(offsets.shape(0)) == n_items + 1 &&
                      static_cast<std::int64_t>(candidate_offsets.shape(0)) == n_items + 1 &&
                      columns.shape(0) == values.shape(0) && candidates.shape(0) == weights.shape(0);
    if (!fits) throw std::invalid_argument("the shapes of counts, candidates and weights do not fit together");
    const Counts counts{offsets.data(), columns.data(), values.data(), sizes.data(), n_items};
    const Penalties penalties{l1, l2, non_negative, tolerance, most_sweeps};
    const std::int64_t* starts = candidate_offsets.data();
    const std::int32_t* items = candidates.data();
    float* out = weights.data();
    nb::gil_scoped_release release;
    const FullRows full_rows(counts);
    // An exception must not leave a parallel loop.
    std::atomic<bool> is_out_of_memory{false};
#pragma omp parallel
    {
        std::optional<Solver> solver;
        try {
            solver.emplace(counts, full_rows, penalties);
        } catch (const std::bad_alloc&) {
            is_out_of_memory = true;
        }
        // Popular items have many candidates: small portions keep all threads busy to the end.
#pragma omp for schedule(dynamic, 16)
        for (std::int64_t item = 0; item < n_items; ++item) {
            if (is_out_of_memory) continue;
            try {
                solver->solve(item, items + starts[item], starts[item + 1] - starts[item], out + starts[item]);
            } catch (const std::bad_alloc&) {
                is_out_of_memory = true;
            }
        }
    }
    if (is_out_of_memory) throw std::bad_alloc();
}

inline void register_with(nb::module_& module) {
    using namespace nb::literals;
    module.def("elastic_nets", &solve, "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
               "sizes"_a.noconvert(), "candidate_offsets"_a.noconvert(), "candidates"_a.noconvert(), "l1"_a, "l2"_a,
               "non_negative"_a, "tolerance"_a, "most_sweeps"_a, "weights"_a.noconvert(),
               "Twin: `pslrec.kernels._elastic_nets.elastic_nets_plainly`.");
}

}  // namespace pslrec::elastic_nets
