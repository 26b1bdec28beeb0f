/* Random bytes of the kernel. */
#include "sys/entropy.h"

#include <errno.h>
#include <sys/random.h>

void bs_entropy(void *p, size_t n)
{
    char *at = p;

    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);

        /* Without flags it may only be interrupted; anything else is a kernel without it. */
        BS_ASSERT(got > 0 || errno == EINTR);
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        }
    }
}

uint64_t bs_entropy_u64(void)
{
    uint64_t value;

    bs_entropy(&value, sizeof(value));
    return value;
}
