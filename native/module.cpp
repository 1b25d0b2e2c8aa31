// The compiled kernels of pslrec, seen from Python as `pslrec._native`. Arrays come in as nanobind ndarrays, so the
// module needs neither torch nor numpy to build. Every function here has a plain twin in `pslrec.kernels`.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

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

bool cpu_has_avx2() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "Compiled kernels of pslrec.";
    module.def("openmp_threads", &openmp_threads, "Threads that a parallel loop of this module uses.");
    module.def("cpu_has_avx2", &cpu_has_avx2, "Whether this processor runs AVX2 and FMA instructions.");
}
