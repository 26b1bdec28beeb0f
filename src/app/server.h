/* The served process: what is started, in which order, and how it ends. Everything here is called
 * on the main thread, which also takes the signals. */
#pragma once

#include "app/config.h"

struct bs_server;

struct bs_server_options {
    struct bs_config *config; /* taken over                                     */
    const char *file;         /* -c as given, for reloads; NULL: searched again */
    const char *port_file;    /* gets the port that was bound; NULL: none       */
    bool log_json;            /* over log.format                                */
};

/* Everything runs and answers when it returns. What was refused is logged and in err. */
BS_NODISCARD bs_rc bs_server_start(const struct bs_server_options *o, struct bs_server **ret,
                                   struct bs_err *err);
/* SIGHUP: takes the file's queues and log over, or logs every fault and changes nothing. */
void bs_server_reload(struct bs_server *s);
/* No new claims; calls in flight may go on for the grace, or not at all when hastened. */
void bs_server_drain(struct bs_server *s, bool hasten);
/* Whether the drain is over: all is settled, or the grace and the time to settle are used up. */
bool bs_server_drained(struct bs_server *s);
/* Ends and frees everything. False: results were left unsettled (their leases run out). */
bool bs_server_stop(struct bs_server *s);
