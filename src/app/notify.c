/* sd_notify. */
#include "app/notify.h"

#ifdef BS_HAVE_SYSTEMD
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <time.h>

/* A service without a manager must run as well, so what comes back does not matter. */
static void tell(const char *text)
{
    int sent = sd_notify(0, text);

    if (sent < 0)
        return;
}

void bs_notify_ready(void)
{
    tell("READY=1");
}

void bs_notify_reloading(void)
{
    char text[64];
    struct timespec t = { 0 };

    clock_gettime(CLOCK_MONOTONIC, &t);
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
    tell(text);
}

void bs_notify_stopping(void)
{
    tell("STOPPING=1");
}
#else
void bs_notify_ready(void)
{
}

void bs_notify_reloading(void)
{
}

void bs_notify_stopping(void)
{
}
#endif
