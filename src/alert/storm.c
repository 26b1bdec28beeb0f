/* The store takes no writes: that alert cannot be a row while it lasts. It is kept here, told to
 * the receivers directly, and written with who was told when the store is well again; from then on
 * it is like any other, its recovery too. Lost when the process ends meanwhile. */
#include "alert/parts.h"

#include "sys/log.h"

#include <stdio.h>

static const struct bs_span patience = { 5000000 };

static struct bs_alert_row row_of(const struct bs_alert_storm *s)
{
    return (struct bs_alert_row){ .id = s->id,
                                  .kind = BS_STR("store_failing"),
                                  .subject = BS_STR("store"),
                                  .message = bs_str_of(s->message),
                                  .count = 1,
                                  .first_at = s->first_at,
                                  .last_at = s->first_at,
                                  .open = true };
}

static bool is_failing(struct bs_alerts *a, char words[256])
{
    pthread_mutex_lock(&a->mutex);
    bool failing = a->failing;
    memcpy(words, a->failure, sizeof(a->failure));
    pthread_mutex_unlock(&a->mutex);
    return failing;
}

static void begin(struct bs_alerts *a, const char *words, struct bs_time now)
{
    struct bs_alert_storm *s = &a->storm;

    s->id = bs_ids_next(a->o.ids, now);
    s->first_at = s->since;
    s->ended_at = BS_TIME_NONE;
    (void)snprintf(s->message, sizeof(s->message), "the store has taken no writes for %llds: %s",
                   (long long)(bs_time_diff(now, s->since).us / 1000000), words);
    bs_log(BS_LOG_ERROR, "alert.raised", BS_FN("id", s->id), BS_FZ("kind", "store_failing"),
           BS_FZ("subject", "store"), BS_FZ("message", s->message));
    for (struct bs_hook *h = a->hooks; h; h = h->next) {
        h->direct_state = BS_DELIVERY_PENDING;
        h->direct_attempts = 0;
        h->direct_at = now;
        h->direct_code[0] = '\0';
    }
}

static void send(struct bs_alerts *a, struct bs_hook *h, struct bs_time now)
{
    struct bs_alert_row row = row_of(&a->storm);
    const struct bs_alert_said said = { &row, BS_ALERT_RAISED };

    bs_alert_post_free(&h->direct);
    h->direct.body.max = BS_ALERT_BODY_MAX;
    h->direct_at = bs_hook_next(a, h->direct_attempts + 1, now);
    if (bs_alert_body(&h->direct.body, a->o.node, &said, 1) != BS_OK)
        return;
    struct bs_str id =
        bs_arena_fmt(&h->direct.arena, "alert-%lld.%d", (long long)row.id, BS_ALERT_RAISED);
    if (!bs_alert_post_start(a, &h->direct, h->conf, id, now))
        h->direct_attempts++;
}

void bs_storm_step(struct bs_alerts *a, struct bs_time now)
{
    struct bs_alert_storm *s = &a->storm;
    char words[256];

    if (!is_failing(a, words)) {
        if (s->id && !s->ended_at.us)
            s->ended_at = now;
        s->since = BS_TIME_NONE;
        return;
    }
    if (s->since.us == 0)
        s->since = now;
    /* Failing again before it was written: it has not ended. */
    if (s->id && !s->telling)
        s->ended_at = BS_TIME_NONE;
    if (!s->id && bs_time_diff(now, s->since).us >= patience.us)
        begin(a, words, now);
    for (struct bs_hook *h = a->hooks; s->id && h; h = h->next)
        if (h->conf && !h->direct.out && h->direct_state == BS_DELIVERY_PENDING &&
            !bs_time_before(now, h->direct_at))
            send(a, h, now);
}

void bs_storm_ended(struct bs_alerts *a, struct bs_time now)
{
    (void)now;
    for (struct bs_hook *h = a->hooks; h; h = h->next) {
        if (!h->direct.ended)
            continue;
        h->direct.ended = false;
        struct bs_alert_result r = bs_alert_post_result(&h->direct);
        h->direct_attempts++;
        h->direct_state = r.state;
        (void)snprintf(h->direct_code, sizeof(h->direct_code), "%.*s", BS_STR_FMT(r.code));
    }
}

/* ---- when it is well again ---- */

static uint32_t list_told(struct bs_alerts *a, struct bs_time now)
{
    uint32_t n = 0;

    for (struct bs_hook *h = a->hooks; h && n < BS_COUNT(a->storm.raised); h = h->next) {
        if (!h->conf)
            continue;
        a->storm.raised[n++] = (struct bs_delivery){
            .deliverer = bs_str_of(h->name),
            .state = h->direct_state,
            .attempts = h->direct_attempts,
            .next_at = now,
            .code = bs_str_of(h->direct_code),
            .created_at = a->storm.first_at,
            .sent_at = h->direct_state == BS_DELIVERY_SENT ? now : BS_TIME_NONE,
        };
    }
    return n;
}

void bs_storm_record(struct bs_alerts *a, struct bs_time now)
{
    struct bs_alert_storm *s = &a->storm;

    if (!s->id || !s->ended_at.us)
        return;
    for (struct bs_hook *h = a->hooks; h; h = h->next)
        if (h->direct.out)
            return;
    struct bs_op *op = bs_alerts_op(a, BS_OP_ALERT_RECORD, now);
    if (!op)
        return;
    op->id = s->id;
    op->alert_record =
        (struct bs_op_alert_record){ .kind = BS_STR("store_failing"),
                                     .subject = BS_STR("store"),
                                     .message = bs_str_of(s->message),
                                     .recovered_message = BS_STR("the store takes writes again"),
                                     .first_at = s->first_at,
                                     .recovered_at = s->ended_at,
                                     .raised = s->raised,
                                     .raised_n = list_told(a, now) };
    s->telling = true;
}

void bs_storm_recorded(struct bs_alerts *a)
{
    if (a->storm.telling)
        a->storm.id = 0;
    a->storm.telling = false;
}
