/* What goes wrong, as RFC 9457 application/problem+json with a stable type and code. Any thread. */
#pragma once

#include "base/buf.h"
#include "core/submit.h"

/* Code, HTTP status, title. A code never changes its meaning; docs/HTTP.md lists them. */
#define BS_PROBLEM_LIST(X)                                                                         \
    X(BAD_REQUEST, 400, "Not a well-formed request")                                               \
    X(NOT_JSON, 400, "Not JSON")                                                                   \
    X(UNKNOWN_PARAMETER, 400, "Unknown query parameter")                                           \
    X(BAD_PARAMETER, 400, "Bad query parameter")                                                   \
    X(BAD_HEADER, 400, "Bad request header")                                                       \
    X(UNAUTHORIZED, 401, "No valid token")                                                         \
    X(FORBIDDEN, 403, "Not allowed")                                                               \
    X(NOT_FOUND, 404, "No such thing")                                                             \
    X(METHOD_NOT_ALLOWED, 405, "Wrong method")                                                     \
    X(TOO_SLOW, 408, "The request came too slowly")                                                \
    X(REQUEST_CONFLICT, 409, "The request_id is taken by other content")                           \
    X(EFFECT_CONFLICT, 409, "The effect_key is taken by other content")                            \
    X(STATE_CONFLICT, 409, "The state does not allow it")                                          \
    X(STALE_VERSION, 409, "The version is stale")                                                  \
    X(NAME_TAKEN, 409, "The name is taken")                                                        \
    X(TOO_BIG, 413, "Too big")                                                                     \
    X(UNSUPPORTED_MEDIA_TYPE, 415, "Wrong content type")                                           \
    X(INVALID_FIELDS, 422, "A field is wrong")                                                     \
    X(VERSION_REQUIRED, 428, "expected_version is required")                                       \
    X(INTERNAL, 500, "A fault of the server")                                                      \
    X(BUSY, 503, "Too much is waiting")                                                            \
    X(TIMEOUT, 503, "No answer in time")                                                           \
    X(UNAVAILABLE, 503, "The store does not answer")                                               \
    X(STOPPING, 503, "The server is stopping")

#define BS_PROBLEM_ENUM(code, status, title) BS_PROBLEM_##code,
enum bs_problem { BS_PROBLEM_NONE = 0, BS_PROBLEM_LIST(BS_PROBLEM_ENUM) BS_PROBLEM_COUNT };

int bs_problem_status(enum bs_problem p);
const char *bs_problem_code(enum bs_problem p);

struct bs_problem_more {
    struct bs_str detail;
    const struct bs_field_errors *errors; /* NULL: none   */
    int64_t task_id;                      /* 0: none      */
};

/* Appends the document; what does not fit is left to out's sticky failure. */
void bs_problem_write(struct bs_buf *out, enum bs_problem p, const struct bs_problem_more *more);
