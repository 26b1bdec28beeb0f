/* The command line's way to the served process: HTTP over the UNIX socket beside the store. Main
 * thread; blocks. */
#pragma once

#include "app/cli.h"
#include "app/config.h"

struct bs_client_request {
    const char *method; /* "GET", "POST"                    */
    const char *path;   /* with its query, percent-encoded  */
    struct bs_str body;
    const char *content_type; /* NULL: application/json     */
};

struct bs_client_reply {
    int status;
    struct bs_buf body;
};
void bs_client_reply_done(struct bs_client_reply *r); /* safe on { 0 } */

/* BS_OK: an answer came, whatever its status. BS_E_NOT_FOUND: nobody listens on the socket.
 * BS_E_UNAVAILABLE, BS_E_UNKNOWN: the exchange broke before or after the request had left. */
BS_NODISCARD bs_rc bs_client_call(const char *socket, const struct bs_client_request *q,
                                  struct bs_client_reply *ret, struct bs_err *err);

/* One segment or value, percent-encoded. */
void bs_client_escape(struct bs_buf *out, struct bs_str s);
/* Adds "?name=value" or "&name=value" unless value is NULL. */
void bs_client_param(struct bs_buf *path, const char *name, const char *value);

/* Loads the places of the configuration; complains and gives BS_EXIT_USAGE when it is wrong. */
enum bs_exit bs_client_config(const struct bs_cli *cli, struct bs_config **ret);
/* The whole of a command that asks the server: configuration, call, complaint about every answer
 * that is not 2xx. BS_EXIT_DONE: ret holds the answer. */
enum bs_exit bs_client_ask(const struct bs_cli *cli, const struct bs_client_request *q,
                           struct bs_client_reply *ret);
/* Explains an answer that is not 2xx in one line per fault; always BS_EXIT_FAILED. */
enum bs_exit bs_client_explain(const struct bs_client_reply *r);
/* Where a list goes on, on standard error; nothing at its end. */
void bs_client_more(const struct bs_client_reply *r);
/* The answer's bytes and a newline on standard output. */
void bs_client_print(const struct bs_client_reply *r);
