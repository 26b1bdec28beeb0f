/* A YAML tree checked against the table of keys: every value parsed, every fault collected. */
#pragma once

#include "app/config_schema.h"
#include "app/config_yaml.h"
#include "core/rate.h"

struct bs_conf_fault {
    uint32_t line; /* 0: the file as a whole */
    struct bs_str text;
};

enum { BS_CONF_FAULTS_MAX = 100 };

/* Everything that is wrong with one file. */
struct bs_conf_faults {
    struct bs_arena *arena;
    struct bs_conf_fault items[BS_CONF_FAULTS_MAX];
    uint32_t n;
    uint32_t more; /* found beyond the maximum */
};

BS_PRINTF(3, 4)
void bs_conf_fault_add(struct bs_conf_faults *f, uint32_t line, const char *fmt, ...);

/* One value as read or as the default has it. */
struct bs_conf_val {
    bool given;                          /* written in the file                          */
    uint32_t line;                       /* of the key, or of the group that lacks it    */
    int64_t n;                           /* COUNT, SPAN µs, PERCENT, FACTOR, CHOICE, FLAG */
    struct bs_str text;                  /* TEXT: replaced, terminated; p NULL: none     */
    struct bs_str raw;                   /* TEXT: as written                             */
    struct bs_rate rate;                 /* RATE                                         */
    const struct bs_yaml_node *node;     /* SPANS, STATUSES, RULE, AMOUNTS; NULL: not given, or the
                                            word instead                                 */
    const struct bs_conf_group *section; /* SECTION: NULL: absent or the word instead    */
    struct bs_conf_group *named;         /* NAMED: n of them                             */
};

struct bs_conf_group {
    struct bs_str path; /* "queues.PAY_CALLBACK", "" at the top */
    struct bs_str name; /* of a queue, host, webhook            */
    uint32_t line;
    struct bs_conf_val v[BS_CONF_KEYS_MAX]; /* by the enum of the section */
};

/* Reads one group; faults are added, and what is wrong keeps its default. `map` NULL: all defaults.
 */
void bs_conf_read(const struct bs_conf_section *s, const struct bs_yaml_node *map,
                  struct bs_conf_group *g, struct bs_conf_faults *f);
/* One duration; false: a fault was added. `what` names the key. */
bool bs_conf_span(const struct bs_conf_key *k, struct bs_str what, const struct bs_yaml_node *n,
                  int64_t *ret, struct bs_conf_faults *f);
/* Replaces every ${NAME} by the environment's value, $${ by ${; false: a fault was added. */
bool bs_conf_expand(struct bs_str s, struct bs_str what, uint32_t line, struct bs_str *ret,
                    struct bs_conf_faults *f);
/* The nearest of names, NULL when none is near. */
const char *bs_conf_nearest(struct bs_str word, const char *(*name)(const void *ctx, uint32_t i),
                            const void *ctx, uint32_t n);
