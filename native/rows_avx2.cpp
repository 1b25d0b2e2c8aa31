#define PSLREC_VARIANT avx2
#include "rows.hpp"
#include "catalog_row.hpp"
