/* Calls of the tests: a caller, and one call at a time run to its end. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/caller.h"
#include "peer.h"
#include "sys/clock.h"

struct one_call {
    struct bs_call call;
    struct bs_arena arena;
    char url[256];
};

struct bs_caller *caller_open(const char *ca_file, const char *fake);
void call_begin(struct bs_caller *c, struct one_call *o, const char *method, const char *url);
/* Runs the caller until a call comes back, at most 20 s. */
struct bs_call *call_next(struct bs_caller *c);
/* Runs the caller until *n reaches at_least, at most 20 s. */
void run_until(struct bs_caller *c, const _Atomic int *n, int at_least);
/* Begin and end of one POST of "hello" to http://127.0.0.1:port/p. */
const struct bs_facts *post(struct bs_caller *c, struct one_call *o, uint16_t port);
void call_done(struct one_call *o);
void assert_str(struct bs_str got, const char *want);
