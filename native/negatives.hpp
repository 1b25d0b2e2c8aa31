// Drawing negatives: uniform over the items that a user does not have, with false negatives mixed in where asked for.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "counter_random.hpp"
#include "dispatch.hpp"

namespace pslrec {

// Ranks among the items that are free: each draw for itself.
struct RepeatedRanks {
    void operator()(std::uint64_t stream, std::uint32_t n_free, std::int32_t* ranks, std::int64_t count) const {
        for (std::int64_t draw = 0; draw < count; ++draw) {
            ranks[draw] = static_cast<std::int32_t>(below(number_of(stream, static_cast<std::uint64_t>(draw)), n_free));
        }
    }
};

// The same without repetition: Floyd's way to a random subset. Where there are fewer free items than draws, every item comes
// once before any comes again.
struct DistinctRanks {
    std::vector<std::uint64_t> drawn;

    void operator()(std::uint64_t stream, std::uint32_t n_free, std::int32_t* ranks, std::int64_t count) {
        for (std::int64_t begin = 0; begin < count; begin += n_free) {
            drawn.assign(n_free / 64 + 1, 0);
            const auto size = static_cast<std::uint32_t>(std::min<std::int64_t>(n_free, count - begin));
            for (std::uint32_t draw = 0; draw < size; ++draw) {
                const std::uint32_t last = n_free - size + draw;
                std::uint32_t rank = below(number_of(stream, static_cast<std::uint64_t>(begin + draw)), last + 1);
                if (drawn[rank / 64] >> (rank % 64) & 1) rank = last;
                drawn[rank / 64] |= std::uint64_t{1} << (rank % 64);
                ranks[begin + draw] = static_cast<std::int32_t>(rank);
            }
        }
    }
};

// Fills columns 1, 2, ... of `candidates`; column 0 is the caller's.
template <typename Ranks>
void draw_negatives(std::uint64_t key, Array<const std::int64_t, 1> pairs, Array<const std::int32_t, 1> users,
                    Array<const std::int64_t, 1> taken_offsets, Array<const std::int32_t, 1> taken_items,
                    Array<const std::int64_t, 1> false_offsets, Array<const std::int32_t, 1> false_items, double noise,
                    std::int32_t n_items, Array<std::int32_t, 2> candidates) {
    const std::int64_t batch = static_cast<std::int64_t>(candidates.shape(0));
    const std::int64_t width = static_cast<std::int64_t>(candidates.shape(1));
#pragma omp parallel
    {
        Ranks draw_ranks;
        std::vector<std::int32_t> ranks(width);
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < batch; ++row) {
            const std::int32_t user = users.data()[row];
            const std::int64_t begin = taken_offsets.data()[user];
            const std::int64_t n_taken = taken_offsets.data()[user + 1] - begin;
            const auto n_free = static_cast<std::uint32_t>(n_items - n_taken);
            const std::uint64_t stream = stream_of(key, static_cast<std::uint64_t>(pairs.data()[row]));
            draw_ranks(stream, n_free, ranks.data() + 1, width - 1);
            std::int32_t* out = candidates.data() + row * width;
            rows().skip_taken(ranks.data() + 1, out + 1, width - 1, taken_items.data() + begin, n_taken);
            if (noise <= 0) continue;
            const std::int64_t false_begin = false_offsets.data()[user];
            const auto n_false = static_cast<std::uint32_t>(false_offsets.data()[user + 1] - false_begin);
            for (std::int64_t draw = 1; n_false > 0 && draw < width; ++draw) {
                const std::uint64_t number = number_of(stream, static_cast<std::uint64_t>(draw - 1));
                if (share(number) < noise) out[draw] = false_items.data()[false_begin + below(number, n_false)];
            }
        }
    }
}

}  // namespace pslrec
