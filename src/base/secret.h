/* A secret that no format function accepts and no log field takes. */
#pragma once

#include "base/base.h"

struct bs_secret {
    struct bs_str bytes; /* the key's bytes, ready for HMAC; p NULL: declared as none */
};
