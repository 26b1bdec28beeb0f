/* sd_notify. */
#include "app/notify.h"

#ifdef BS_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

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
    tell("RELOADING=1");
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
