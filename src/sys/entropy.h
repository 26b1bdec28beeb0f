/* Random bytes of the kernel (getrandom). Thread-safe. */
#pragma once

#include "base/base.h"

void bs_entropy(void *p, size_t n);
uint64_t bs_entropy_u64(void);
