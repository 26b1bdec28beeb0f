/* One signed POST to a receiver: its bytes, and what its reply means. */
#include "alert/parts.h"

#include "base/plant.h"
#include "base/text.h"
#include "sys/crypto.h"
#include "json/write.h"

static const struct bs_span connect_most = { 5000000 };

/* ---- body ---- */

static void add_task(struct bs_json *j, int64_t task_id)
{
    if (task_id) {
        bs_json_kid(j, "task_no", task_id);
        return;
    }
    bs_json_key(j, "task_no");
    bs_json_null(j);
}

static void add_alert(struct bs_json *j, const struct bs_alert_said *said)
{
    const struct bs_alert_row *r = said->row;
    bool raised = said->phase == BS_ALERT_RAISED;

    bs_json_open(j);
    bs_json_kid(j, "id", r->id);
    bs_json_kstr(j, "kind", r->kind);
    bs_json_kstr(j, "subject", r->subject);
    bs_json_kstr_or_null(j, "biz_type", r->biz_type);
    add_task(j, r->task_id);
    bs_json_kstr(j, "phase", bs_str_of(bs_alert_phase_name(said->phase)));
    bs_json_kstr_or_null(j, "message", raised ? r->message : r->recovered_message);
    bs_json_kint(j, "count", r->count);
    bs_json_ktime(j, "first_at", r->first_at);
    bs_json_ktime(j, "last_at", r->last_at);
    bs_json_ktime(j, "recovered_at", r->recovered_at);
    bs_json_close(j);
}

bs_rc bs_alert_body(struct bs_buf *out, struct bs_str node, const struct bs_alert_said *items,
                    uint32_t n)
{
    struct bs_json *j = bs_json_new(out);

    if (!j)
        return BS_E_NOMEM;
    bs_json_open(j);
    bs_json_kint(j, "version", 1);
    bs_json_kstr(j, "node", node);
    bs_json_key(j, "alerts");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < n; i++)
        add_alert(j, &items[i]);
    bs_json_close_array(j);
    bs_json_close(j);
    return bs_json_end(j, NULL);
}

/* ---- request ---- */

static uint32_t make_headers(struct bs_alert_post *p, const struct bs_alert_webhook *to,
                             struct bs_str id, struct bs_time wall)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf signature = { .max = 128 };
    struct bs_arena *a = &p->arena;
    int64_t at = wall.us / 1000000;
    uint32_t n = 0;

    p->headers[n++] = "Content-Type: application/json";
    p->headers[n++] = bs_arena_fmt(a, "webhook-id: %.*s", BS_STR_FMT(id)).p;
    p->headers[n++] = bs_arena_fmt(a, "webhook-timestamp: %lld", (long long)at).p;
    if (!to->secret.bytes.p)
        return n;
    bs_webhook_sign(&signature, &to->secret, id, at, bs_buf_str(&p->body));
    a->failed |= signature.failed;
    p->headers[n++] =
        bs_arena_fmt(a, "webhook-signature: %.*s", BS_STR_FMT(bs_buf_str(&signature))).p;
    return n;
}

bool bs_alert_post_start(struct bs_alerts *a, struct bs_alert_post *p,
                         const struct bs_alert_webhook *to, struct bs_str id, struct bs_time now)
{
    uint32_t n = make_headers(p, to, id, bs_wall(a->o.clock));
    struct bs_str url = bs_arena_str(&p->arena, to->url);

    if (p->arena.failed)
        return false;
    p->call = (struct bs_call){
        .method = "POST",
        .url = url.p,
        .headers = p->headers,
        .headers_n = n,
        .body = bs_buf_str(&p->body),
        .connect_timeout = BS_US(BS_MIN(to->timeout.us, connect_most.us)),
        .timeout = to->timeout,
        .arena = &p->arena,
        .user = p,
    };
    p->out = true;
    a->o.caller->ops->start(a->o.caller, &p->call, now);
    return true;
}

/* ---- reply ---- */

/* Too many, too large, not understood: perhaps only one of them is at fault. */
static bool dislikes(int status)
{
    return status >= 400 && status < 500 && status != 408 && status != 429;
}

struct bs_alert_result bs_alert_post_result(struct bs_alert_post *p)
{
    const struct bs_facts *f = &p->call.facts;
    struct bs_alert_result r = { .state = BS_DELIVERY_PENDING };

    if (f->wire != BS_WIRE_REPLIED) {
        r.code = bs_str_of(bs_wire_code(f->wire));
        r.message = bs_text_clean(&p->arena, bs_str_of(f->detail), 200);
        return r;
    }
    r.code = bs_arena_fmt(&p->arena, "HTTP_%d", f->status);
    if ((f->status >= 200 && f->status < 300) || BS_PLANT(ALERT_LOST)) {
        r.state = BS_DELIVERY_SENT;
        return r;
    }
    if (f->status == 410)
        r.state = BS_DELIVERY_GIVEN_UP;
    r.smaller = dislikes(f->status);
    r.message = bs_text_clean(&p->arena, f->body, 200);
    return r;
}

void bs_alert_post_free(struct bs_alert_post *p)
{
    bs_arena_free(&p->arena);
    bs_buf_free(&p->body);
    p->out = p->ended = false;
}
