#define PSLREC_VARIANT portable
#include "rows.hpp"
#include "catalog_row.hpp"
