/* What is known of one HTTP exchange, as facts: the border between net/ (which fills them) and
 * core/ (which judges them). The only header of core that net includes; it knows no task. Pure. */
#pragma once

#include "base/base.h"
#include "base/time.h"

/* What a server asked for with Retry-After; at most the largest valid of all header lines. */
struct bs_retry_after {
    bool given;
    bool clamped; /* more than 6 h was asked */
    struct bs_span delay;
};

/* One Retry-After value (seconds or HTTP date) merged into what earlier lines gave. Past, negative,
 * junk: ignored. */
void bs_retry_after_add(struct bs_retry_after *r, struct bs_str value, struct bs_time now);

/* How the exchange ended on the wire. "Nothing sent" is a fact of its own (struct bs_facts.sent).
 */
#define BS_WIRE_LIST(X)                                                                            \
    X(REPLIED, "")                                                                                 \
    X(DNS_NXDOMAIN, "DNS_NXDOMAIN")                                                                \
    X(DNS_TEMPORARY, "DNS_TEMPORARY")                                                              \
    X(CONNECT_REFUSED, "CONNECT_REFUSED")                                                          \
    X(CONNECT_TIMEOUT, "CONNECT_TIMEOUT")                                                          \
    X(CONNECT_FAILED, "CONNECT_FAILED")                                                            \
    X(TLS_HANDSHAKE, "TLS_HANDSHAKE")                                                              \
    X(TLS_EXPIRED, "TLS_EXPIRED")                                                                  \
    X(TLS_NAME, "TLS_NAME")                                                                        \
    X(TLS_UNKNOWN_ISSUER, "TLS_UNKNOWN_ISSUER")                                                    \
    X(TIMEOUT, "TIMEOUT")                                                                          \
    X(RESET, "RESET")                                                                              \
    X(BAD_HTTP, "BAD_HTTP")                                                                        \
    X(CANCELLED, "CANCELLED")                                                                      \
    X(INTERNAL, "INTERNAL")

#define BS_WIRE_ENUM(name, code) BS_WIRE_##name,
enum bs_wire { BS_WIRE_LIST(BS_WIRE_ENUM) BS_WIRE_COUNT };
const char *bs_wire_code(enum bs_wire w);

/* Filled by the caller's owner from the HTTP library. Slices live as long as the call's arena. */
struct bs_facts {
    enum bs_wire wire;
    bool sent;          /* some byte of the request may have left (headers included)          */
    int status;         /* meaningful with REPLIED                                            */
    struct bs_str body; /* at most 64 KiB                                             */
    bool body_cut;      /* the reply was longer                                       */
    struct bs_retry_after retry_after;
    struct bs_str location; /* of a 3xx                                               */
    struct bs_time started_at, ended_at;
    char detail[160]; /* the library's words, for the message                         */
};
