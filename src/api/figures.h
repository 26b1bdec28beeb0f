/* Everything that is known of all queues at one moment: the configuration, what the store keeps of
 * them with every commit, and what this process sees. Nothing is counted by scanning. On a reader's
 * thread. */
#pragma once

#include "api/api.h"
#include "store/store.h"
#include "json/write.h"

/* Tasks of one queue that have an amount in one currency. */
struct bs_money_figures {
    struct bs_str currency;
    int64_t counts[BS_STATE_COUNT];
    int64_t amounts[BS_STATE_COUNT]; /* minor units */
};

struct bs_queue_figures {
    struct bs_str biz_type;
    const struct bs_queue_conf *conf; /* NULL: not configured                        */
    struct bs_queue_row row;          /* all zero but the name: nothing is stored    */
    const struct bs_queue_live *live; /* NULL: this process knows nothing of it      */
    int64_t counts[BS_STATE_COUNT];
    int64_t unknown;
    struct bs_money_figures *money; /* by currency */
    uint32_t money_n;
};

/* Configured queues first, then those of which only something stored is left. */
struct bs_figures {
    struct bs_queue_figures *queues;
    uint32_t n;
};

/* Everything lives in the arena. */
BS_NODISCARD bs_rc bs_figures_read(const struct bs_api_options *o, struct bs_store *s,
                                   struct bs_arena *a, struct bs_figures *ret, struct bs_err *err);
/* NULL: no such queue. */
const struct bs_queue_figures *bs_figures_find(const struct bs_figures *f, struct bs_str biz_type);
/* What this process sees of its queues; *ret lives in the arena. */
uint32_t bs_figures_live(const struct bs_api_options *o, struct bs_arena *a,
                         struct bs_queue_live **ret);
/* Whether money in this state is not settled. */
static inline bool bs_state_exposed(enum bs_state state)
{
    return state != BS_STATE_NONE && state != BS_SUCCESS && state != BS_CLOSED;
}
int64_t bs_exposure_of(const struct bs_money_figures *m);

/* Members of an open object: "counts", "unknown", "exposure"; and "amounts", each sum alone. */
void bs_render_counts(struct bs_json *j, const struct bs_queue_figures *q);
void bs_render_amounts(struct bs_json *j, const struct bs_queue_figures *q);
