#define PSLREC_VARIANT avx512
#include "dispatch.hpp"
#include "rows.hpp"
#include "catalog_row.hpp"
#include "adam_row.hpp"
#include "noise_row.hpp"
#include "group_maxima.hpp"
#include "product_tiles.hpp"
