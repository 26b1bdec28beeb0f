/* queue_stat: the changes of one transaction are collected by group and written once before its
 * end. Sums wrap around 64 bits, so that what comes and goes is exact whatever the amounts. */
#include "store/inner.h"

#include <stdio.h>

static uint32_t hash(struct bs_str biz_type, enum bs_state state, const char *currency)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < biz_type.n; i++)
        h = (h ^ (uint8_t)biz_type.p[i]) * 16777619u;
    for (; *currency; currency++)
        h = (h ^ (uint8_t)*currency) * 16777619u;
    return (h ^ (uint32_t)state) * 16777619u;
}

static bool is_group(const struct stat_group *g, struct bs_str biz_type, enum bs_state state,
                     const char *currency)
{
    return g->state == state && g->biz_type_n == biz_type.n &&
           memcmp(g->biz_type, biz_type.p, biz_type.n) == 0 && strcmp(g->currency, currency) == 0;
}

static struct stat_group *group_of(struct stats *st, struct bs_str biz_type, enum bs_state state,
                                   const char *currency)
{
    uint32_t slot = hash(biz_type, state, currency) % STAT_SLOTS;

    for (; st->slots[slot]; slot = (slot + 1) % STAT_SLOTS) {
        struct stat_group *g = &st->groups[st->slots[slot] - 1];
        if (is_group(g, biz_type, state, currency))
            return g;
    }
    struct stat_group *g = &st->groups[st->n++];
    *g = (struct stat_group){ .state = state };
    memcpy(g->biz_type, biz_type.p, biz_type.n);
    g->biz_type_n = (uint8_t)biz_type.n;
    snprintf(g->currency, sizeof(g->currency), "%s", currency);
    g->currency_n = (uint8_t)strlen(g->currency);
    st->slots[slot] = (uint16_t)st->n;
    return g;
}

static int64_t wrap(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

bs_rc stat_add(struct bs_store *s, const struct bs_task *t, enum bs_state state, bool unknown,
               int by, struct bs_err *err)
{
    if (t->biz_type.n > 32 || t->biz_type.n == 0)
        return bs_fail(err, BS_E_INVALID, "biz_type has %zu bytes, not 1 to 32", t->biz_type.n);
    if (s->stats.n == STAT_GROUPS)
        BS_TRY(stat_flush(s, err));
    struct stat_group *g = group_of(&s->stats, t->biz_type, state, t->money.currency);
    g->n += by;
    g->unknown += unknown ? by : 0;
    g->amount = wrap(g->amount, by > 0 ? t->money.minor : -t->money.minor);
    return BS_OK;
}

bs_rc stat_move(struct bs_store *s, const struct bs_task *t, enum bs_state to, bool unknown,
                struct bs_err *err)
{
    BS_TRY(stat_add(s, t, t->state, t->outcome_unknown, -1, err));
    return stat_add(s, t, to, unknown, 1, err);
}

static bs_rc flush_group(struct bs_store *s, const struct stat_group *g, struct bs_err *err)
{
    struct bs_val old[3];
    bool found = false;
    struct bs_val args[7] = { bs_i64(NODE), bs_text((struct bs_str){ g->biz_type, g->biz_type_n }),
                              textz(bs_state_name(g->state)),
                              bs_text((struct bs_str){ g->currency, g->currency_n }) };

    if (g->n == 0 && g->amount == 0 && g->unknown == 0)
        return BS_OK;
    BS_TRY(store_one(s, BS_SQL_STAT_GET, args, 4, old, 3, &found, err));
    args[4] = bs_i64(found ? old[0].i + g->n : g->n);
    args[5] = bs_i64(found ? wrap(old[1].i, g->amount) : g->amount);
    args[6] = bs_i64(found ? old[2].i + g->unknown : g->unknown);
    return run(s, found ? BS_SQL_STAT_UPDATE : BS_SQL_STAT_INSERT, args, 7, NULL, err);
}

bs_rc stat_flush(struct bs_store *s, struct bs_err *err)
{
    for (uint32_t i = 0; i < s->stats.n; i++)
        BS_TRY(flush_group(s, &s->stats.groups[i], err));
    stat_forget(s);
    return BS_OK;
}

void stat_forget(struct bs_store *s)
{
    if (s->stats.n == 0)
        return;
    s->stats.n = 0;
    memset(s->stats.slots, 0, sizeof(s->stats.slots));
}
