/* What a service manager is told; nothing without one, or without libsystemd. Main thread. */
#pragma once

void bs_notify_ready(void);
void bs_notify_reloading(void);
void bs_notify_stopping(void);
