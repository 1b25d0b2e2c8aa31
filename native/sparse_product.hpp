// Product of a sparse matrix in compressed rows with a dense one, plus an optional dense addend:
//     out = matrix @ dense + addend
// Every row of the result is summed by one thread in the order of its entries, so the result does not depend on the
// number of threads.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define PSLREC_SPARSE_PRODUCT_AVX2 1
#include <immintrin.h>
#endif

namespace pslrec::sparse_product {

namespace nb = nanobind;

template <typename Number>
struct Product {
    const std::int32_t *offsets;
    const std::int32_t *columns;
    const Number *values;
    const Number *dense;
    const Number *addend;  // null: nothing is added
    Number *out;
    std::int64_t n_rows;
    std::int64_t width;
};

template <typename Number>
void portable_row(const Product<Number> &product, std::int64_t row) {
    const std::int64_t width = product.width;
    Number *out = product.out + row * width;
#pragma omp simd
    for (std::int64_t column = 0; column < width; ++column)
        out[column] = product.addend ? product.addend[row * width + column] : Number(0);
    for (std::int32_t entry = product.offsets[row]; entry < product.offsets[row + 1]; ++entry) {
        const Number value = product.values[entry];
        const Number *source = product.dense + product.columns[entry] * width;
#pragma omp simd
        for (std::int64_t column = 0; column < width; ++column) out[column] += value * source[column];
    }
}

#ifdef PSLREC_SPARSE_PRODUCT_AVX2

// The rows gathered from `dense` come in no order a processor could foresee, so they are asked for in advance.
constexpr std::int32_t PREFETCH_ENTRIES = 8;
constexpr int FLOATS_PER_VECTOR = 8;
constexpr int FLOATS_PER_LINE = 16;

// One block of columns of one row; its sums stay in registers over all entries.
template <int Vectors>
__attribute__((target("avx2,fma"), always_inline)) inline void avx2_block(const Product<float> &product, std::int64_t row,
                                                                          std::int64_t first) {
    const std::int64_t width = product.width;
    const std::int32_t end = product.offsets[row + 1];
    const float *addend = product.addend ? product.addend + row * width + first : nullptr;
    __m256 sums[Vectors];
#pragma GCC unroll 8
    for (int vector = 0; vector < Vectors; ++vector)
        sums[vector] = addend ? _mm256_loadu_ps(addend + vector * FLOATS_PER_VECTOR) : _mm256_setzero_ps();
    for (std::int32_t entry = product.offsets[row]; entry < end; ++entry) {
        const std::int32_t ahead = entry + PREFETCH_ENTRIES;
        if (ahead < product.offsets[product.n_rows]) {
            const float *next = product.dense + product.columns[ahead] * width + first;
#pragma GCC unroll 4
            for (int line = 0; line < (Vectors * FLOATS_PER_VECTOR + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE; ++line)
                _mm_prefetch(reinterpret_cast<const char *>(next + line * FLOATS_PER_LINE), _MM_HINT_T0);
        }
        const __m256 value = _mm256_broadcast_ss(product.values + entry);
        const float *source = product.dense + product.columns[entry] * width + first;
#pragma GCC unroll 8
        for (int vector = 0; vector < Vectors; ++vector)
            sums[vector] = _mm256_fmadd_ps(value, _mm256_loadu_ps(source + vector * FLOATS_PER_VECTOR), sums[vector]);
    }
    float *out = product.out + row * width + first;
#pragma GCC unroll 8
    for (int vector = 0; vector < Vectors; ++vector) _mm256_storeu_ps(out + vector * FLOATS_PER_VECTOR, sums[vector]);
}

__attribute__((target("avx2,fma"))) inline void avx2_row(const Product<float> &product, std::int64_t row) {
    const std::int64_t width = product.width;
    std::int64_t first = 0;
    for (; first + 64 <= width; first += 64) avx2_block<8>(product, row, first);
    if (first + 32 <= width) { avx2_block<4>(product, row, first); first += 32; }
    if (first + 16 <= width) { avx2_block<2>(product, row, first); first += 16; }
    if (first + 8 <= width) { avx2_block<1>(product, row, first); first += 8; }
    for (; first < width; ++first) {
        float sum = product.addend ? product.addend[row * width + first] : 0.0f;
        for (std::int32_t entry = product.offsets[row]; entry < product.offsets[row + 1]; ++entry)
            sum += product.values[entry] * product.dense[product.columns[entry] * width + first];
        product.out[row * width + first] = sum;
    }
}

#endif

inline bool runs_avx2() {
#ifdef PSLREC_SPARSE_PRODUCT_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

template <typename Number>
using RowFunction = void (*)(const Product<Number> &, std::int64_t);

inline RowFunction<float> row_function(float, bool portable) {
#ifdef PSLREC_SPARSE_PRODUCT_AVX2
    if (!portable && runs_avx2()) return &avx2_row;
#endif
    (void)portable;
    return &portable_row<float>;
}

inline RowFunction<double> row_function(double, bool) { return &portable_row<double>; }

template <typename Number>
using Matrix = nb::ndarray<Number, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename Number>
using Vector = nb::ndarray<Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Number>
void multiply(Vector<const std::int32_t> offsets, Vector<const std::int32_t> columns, Vector<const Number> values,
              Matrix<const Number> dense, std::optional<Matrix<const Number>> addend, Matrix<Number> out, int n_threads,
              bool portable) {
    const bool fits = offsets.shape(0) == out.shape(0) + 1 && columns.shape(0) == values.shape(0) &&
                      dense.shape(1) == out.shape(1) &&
                      (!addend || (addend->shape(0) == out.shape(0) && addend->shape(1) == out.shape(1)));
    if (!fits) throw std::invalid_argument("the shapes of a sparse product do not fit together");
    const Product<Number> product{offsets.data(), columns.data(), values.data(), dense.data(),
                                  addend ? addend->data() : nullptr, out.data(),
                                  static_cast<std::int64_t>(out.shape(0)), static_cast<std::int64_t>(out.shape(1))};
    const RowFunction<Number> multiply_row = row_function(Number(0), portable);
    nb::gil_scoped_release release;
    // Rows differ in length by orders of magnitude: small portions keep all threads busy to the end.
#pragma omp parallel for schedule(dynamic, 32) num_threads(n_threads)
    for (std::int64_t row = 0; row < product.n_rows; ++row) multiply_row(product, row);
    (void)n_threads;
}

inline void register_with(nb::module_ &module) {
    using namespace nb::literals;
    const char *story = "Write matrix @ dense + addend to `out`; `portable` leaves wide instructions alone.";
    module.def("sparse_product", &multiply<float>, "offsets"_a, "columns"_a, "values"_a.noconvert(), "dense"_a.noconvert(),
               "addend"_a.none().noconvert(), "out"_a.noconvert(), "n_threads"_a, "portable"_a, story);
    module.def("sparse_product", &multiply<double>, "offsets"_a, "columns"_a, "values"_a.noconvert(), "dense"_a.noconvert(),
               "addend"_a.none().noconvert(), "out"_a.noconvert(), "n_threads"_a, "portable"_a, story);
}

}  // namespace pslrec::sparse_product
