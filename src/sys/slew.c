/* Store time: boot time plus an offset that follows the wall clock slowly. */
#include "sys/slew.h"

enum { PPM_MAX = 500, PERIOD_US = 100000 };

void bs_slew_init(struct bs_slew *s, int64_t boot_us, int64_t wall_us)
{
    atomic_init(&s->offset_us, wall_us - boot_us);
    atomic_init(&s->slewed_us, boot_us);
    atomic_init(&s->greatest_us, wall_us);
}

bool bs_slew_due(const struct bs_slew *s, int64_t boot_us)
{
    return boot_us - atomic_load_explicit(&s->slewed_us, memory_order_relaxed) >= PERIOD_US;
}

void bs_slew_correct(struct bs_slew *s, int64_t boot_us, int64_t wall_us)
{
    int64_t since = atomic_load(&s->slewed_us);
    int64_t passed = boot_us - since;

    /* Who moves the mark owns this period's correction; all others leave it. */
    if (passed < PERIOD_US || !atomic_compare_exchange_strong(&s->slewed_us, &since, boot_us))
        return;
    int64_t most = passed / 1000 * PPM_MAX / 1000;
    int64_t wanted = wall_us - boot_us - atomic_load(&s->offset_us);
    atomic_fetch_add(&s->offset_us, BS_MIN(BS_MAX(wanted, -most), most));
}

void bs_slew_not_before(struct bs_slew *s, int64_t boot_us, struct bs_time at)
{
    int64_t behind = at.us - boot_us - atomic_load(&s->offset_us);

    if (behind > 0)
        atomic_fetch_add(&s->offset_us, behind);
}

struct bs_time bs_slew_now(struct bs_slew *s, int64_t boot_us)
{
    int64_t now = boot_us + atomic_load(&s->offset_us);
    int64_t greatest = atomic_load(&s->greatest_us);

    while (now > greatest) {
        if (atomic_compare_exchange_weak(&s->greatest_us, &greatest, now))
            return (struct bs_time){ now };
    }
    return (struct bs_time){ greatest };
}
