/* The real clock and the one that stands until it is moved. */
#include "sys/clock.h"

#include "sys/slew.h"

#include <pthread.h>
#include <time.h>

static struct bs_slew slew;
static pthread_once_t slew_once = PTHREAD_ONCE_INIT;

static int64_t read_us(clockid_t id)
{
    struct timespec t;
    int failed = clock_gettime(id, &t);

    BS_ASSERT(failed == 0);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t bs_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

static void start_slew(void)
{
    bs_slew_init(&slew, read_us(CLOCK_BOOTTIME), read_us(CLOCK_REALTIME));
}

static struct bs_time system_now(struct bs_clock *c)
{
    int64_t boot_us = read_us(CLOCK_BOOTTIME);

    (void)c;
    if (bs_slew_due(&slew, boot_us))
        bs_slew_correct(&slew, boot_us, read_us(CLOCK_REALTIME));
    return bs_slew_now(&slew, boot_us);
}

static struct bs_time system_wall(struct bs_clock *c)
{
    (void)c;
    return (struct bs_time){ read_us(CLOCK_REALTIME) };
}

void bs_clock_system_not_before(struct bs_time at)
{
    (void)bs_clock_system();
    bs_slew_not_before(&slew, read_us(CLOCK_BOOTTIME), at);
}

struct bs_clock *bs_clock_system(void)
{
    static struct bs_clock clock = { system_now, system_wall };
    int failed = pthread_once(&slew_once, start_slew);

    BS_ASSERT(failed == 0);
    return &clock;
}

static struct bs_time manual_now(struct bs_clock *c)
{
    return BS_CONTAINER(c, struct bs_clock_manual, base)->at;
}

void bs_clock_manual_init(struct bs_clock_manual *c, struct bs_time at)
{
    *c = (struct bs_clock_manual){ .base = { .now = manual_now }, .at = at };
}
