#define PSLREC_VARIANT portable
#include "rows.hpp"
