/* A configuration file of any bytes: accepted, or refused in lines that name file and place; what
 * is accepted keeps the limits that the rest of the program relies on. */
#include "app/config.h"
#include "fuzz.h"

static void check_report(struct bs_str report)
{
    BS_ASSERT(report.n > 0 && report.p[report.n - 1] == '\n');
    BS_ASSERT(bs_utf8_valid(report));
    report.n--;
    while (report.p) {
        struct bs_str line = bs_str_cut(&report, '\n');

        BS_ASSERT(bs_str_starts(line, BS_STR("fuzz.yaml:")));
        BS_ASSERT(bs_text_plain(line));
    }
}

static void check_backoff(const struct bs_backoff *b)
{
    BS_ASSERT(b->jitter_pct <= 100);
    for (uint32_t i = 0; i < b->delays_n; i++)
        BS_ASSERT(b->delays[i].us >= 0);
    if (b->delays_n == 0)
        BS_ASSERT(b->initial.us >= 0 && b->max.us >= b->initial.us && b->factor_pct >= 100);
}

static void check_policy(const struct bs_policy *p)
{
    check_backoff(&p->backoff);
    BS_ASSERT(p->max_retry_count >= 1 && p->max_retry_count <= 100);
    BS_ASSERT(p->order_not_found_grace.us >= 0);
    BS_ASSERT(!p->success.json_pointer.p || p->success.values_n > 0);
    for (uint32_t i = 0; i < p->statuses_n; i++) {
        BS_ASSERT(p->statuses[i].status >= 300 && p->statuses[i].status <= 599);
        BS_ASSERT(p->statuses[i].cls != BS_STATUS_DEFAULT);
    }
}

static void check_queue(const struct bs_queue_conf *q)
{
    BS_ASSERT(q->biz_type.n >= 1 && q->biz_type.n <= 32);
    BS_ASSERT(bs_str_starts(q->handler_url, BS_STR("http")) &&
              !memchr(q->handler_url.p, 0, q->handler_url.n));
    BS_ASSERT(q->look == BS_LOOK_NONE || bs_str_starts(q->look_url, BS_STR("http")));
    BS_ASSERT(q->policy.has_look_up == (q->look == BS_LOOK_HTTP));
    BS_ASSERT(q->policy.effect != BS_EFFECT_MONEY || q->policy.has_look_up);
    BS_ASSERT(q->call_timeout.us > 0 && q->connect_timeout.us > 0 && q->concurrency >= 1);
    BS_ASSERT(q->connect_timeout.us <= q->call_timeout.us);
    BS_ASSERT(q->renew ? q->lease.us >= BS_SEC(3).us
                       : q->lease.us > q->look_timeout.us + q->call_timeout.us + BS_SEC(1).us);
    BS_ASSERT(!q->secret.bytes.p || q->secret.bytes.n > 0);
    check_policy(&q->policy);
}

static void check_config(const struct bs_config *c)
{
    BS_ASSERT(c->listen && c->store_url && c->store_path && c->socket && c->node);
    BS_ASSERT(c->grace.us >= 0);
    for (uint32_t i = 0; i < c->queues.n; i++) {
        check_queue(&c->queues.items[i]);
        if (i > 0)
            BS_ASSERT(bs_str_cmp(c->queues.items[i - 1].biz_type, c->queues.items[i].biz_type) < 0);
    }
}

static bs_rc read(struct bs_str text, enum bs_config_scope scope, struct bs_buf *report)
{
    struct bs_config *c = NULL;
    bs_rc rc = bs_config_read("fuzz.yaml", text, scope, &c, report);

    BS_ASSERT(rc == BS_OK || rc == BS_E_INVALID);
    if (rc == BS_OK)
        check_config(c);
    else
        check_report(bs_buf_str(report));
    BS_ASSERT(rc == BS_E_INVALID || report->len == 0);
    if (rc == BS_OK)
        bs_config_free(c);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 4 << 20 };
    BS_CLEANUP(bs_buf_free) struct bs_buf again = { .max = 4 << 20 };
    struct bs_str text = fuzz_input(data, n);
    bs_rc whole = read(text, BS_CONFIG_WHOLE, &report);

    if (whole == BS_OK) {
        bs_rc places = read(text, BS_CONFIG_PLACES, &again);
        BS_ASSERT(places == BS_OK);
    } else if (n % 8 == 0) {
        bs_rc same = read(text, BS_CONFIG_WHOLE, &again);
        BS_ASSERT(same == whole && bs_str_eq(bs_buf_str(&report), bs_buf_str(&again)));
    }
    return 0;
}
