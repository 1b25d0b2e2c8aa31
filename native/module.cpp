// The compiled kernels of pslrec, seen from Python as `pslrec._native`. Arrays come in as nanobind ndarrays, so the
// module needs neither torch nor numpy to build. Every function here has a plain twin in `pslrec.kernels`.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "adam.hpp"
#include "catalog.hpp"
#include "catalog_phases.hpp"
#include "dispatch.hpp"
#include "elastic_nets.hpp"
#include "negatives.hpp"
#include "products.hpp"
#include "row_noise.hpp"
#include "sampled.hpp"
#include "sparse_product.hpp"
#include "sparse_sums.hpp"
#include "top_k.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace nb = nanobind;

namespace {

int openmp_threads() {
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

constexpr const char* kInstructionSets[] = {"portable", "avx2", "avx512"};

std::string instruction_set() { return kInstructionSets[static_cast<int>(pslrec::chosen_instructions())]; }

void use_instructions(const std::string& name) {
    for (int set = 0; set < 3; ++set) {
        if (name == kInstructionSets[set]) return pslrec::use_instructions(static_cast<pslrec::InstructionSet>(set));
    }
    throw std::invalid_argument("`name` must be portable, avx2 or avx512, got " + name);
}

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "Compiled kernels of pslrec.";
    module.def("openmp_threads", &openmp_threads, "Threads that a parallel loop of this module uses.");
    module.def("instruction_set", &instruction_set, "The variant that runs: portable, avx2 or avx512.");
    module.def("use_instructions", &use_instructions, "Run another variant, or the widest below it; for tests.");
    module.def("draw_negatives", &pslrec::draw_negatives<pslrec::RepeatedRanks>,
               "Twin: `pslrec.kernels.negatives.draw_negatives_plainly`.");
    module.def("draw_distinct_negatives", &pslrec::draw_negatives<pslrec::DistinctRanks>,
               "Twin: the same with `pool.replacement` false.");
    module.def("sampled_scores", &pslrec::sampled_scores, "Twin: `pslrec.kernels.sampled.sampled_scores_plainly`.");
    module.def("sampled_scores_backward", &pslrec::sampled_scores_backward, "Gradient of `sampled_scores`.");
    module.def("adam_fetch", &pslrec::adam_fetch, "Twin: `torch.optim.Adam`, see `pslrec.kernels.adam`.");
    module.def("adam_update", &pslrec::adam_update, "Twin: `torch.optim.Adam`, see `pslrec.kernels.adam`.");
    module.def("catalog_rows", &pslrec::catalog_rows, "Twin: `catalog_values` of the losses.");
    module.def("catalog_moments", &pslrec::catalog_moments, "Twin: the moments in `pslrec.kernels._torch_operations`.");
    module.def("catalog_polynomials", &pslrec::catalog_polynomials, "Twin: the polynomial there.");
    module.def("catalog_node_sums", &pslrec::catalog_node_sums, "Twin: `PowerTerms` in `pslrec.kernels._torch_terms`.");
    module.def("catalog_node_gradients", &pslrec::catalog_node_gradients, "Twin: the same, multiplied by the terms.");
    module.def("log_sum_rows", &pslrec::log_sum_rows, "Twin: `pslrec.kernels.log_sum.log_sum_plainly`.");
    module.def("add_row_noise", &pslrec::add_row_noise, "Twin: `pslrec.kernels.row_noise.row_noise_plainly`.");
    pslrec::elastic_nets::register_with(module);
    pslrec::products::register_with(module);
    pslrec::sparse_product::register_with(module);
    pslrec::sparse_sums::register_with(module);
    pslrec::top_k::register_with(module);
}
