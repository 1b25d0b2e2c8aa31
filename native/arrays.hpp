// How arrays come in from Python: contiguous, on the CPU, of exactly this type; nothing is copied.

#pragma once

#include <nanobind/ndarray.h>

namespace pslrec {

template <typename T, std::size_t Dimensions>
using Array = nanobind::ndarray<T, nanobind::ndim<Dimensions>, nanobind::c_contig, nanobind::device::cpu>;

}  // namespace pslrec
