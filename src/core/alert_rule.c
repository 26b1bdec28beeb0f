/* The rules of alerts. One function a kind of figure; the words name figure and limit. */
#include "core/alert_rule.h"

#include "base/buf.h"

static const struct bs_span grace_default = { INT64_C(300) * 1000000 };

struct judge {
    const struct bs_alert_judgement *j;
    struct bs_alert_verdict *ret;
    uint32_t n;
};

bool bs_alert_is_condition(struct bs_str kind)
{
    static const char *const kinds[] = { "manual_growth", "manual_age", "oldest_due",
                                         "backlog",       "unknown",    "exposure",
                                         "breaker",       "pause",      "store_failing" };

    for (size_t i = 0; i < BS_COUNT(kinds); i++)
        if (bs_str_is(kind, kinds[i]))
            return true;
    return false;
}

/* ---- words ---- */

static void copy(char *to, size_t size, struct bs_str s)
{
    size_t n = BS_MIN(s.n, size - 1);

    if (n)
        memcpy(to, s.p, n);
    to[n] = '\0';
}

static void add_queue(struct bs_buf *b, const struct judge *j)
{
    bs_buf_add(b, j->j->figures->biz_type);
}

/* Two units are enough for people: 6m12s, 1h5m, 3d2h. */
static void add_age(struct bs_buf *b, struct bs_span d)
{
    int64_t s = BS_MAX(d.us, (int64_t)0) / 1000000;

    if (s < 60)
        bs_buf_fmt(b, "%llds", (long long)s);
    else if (s < 3600)
        bs_buf_fmt(b, "%lldm%llds", (long long)(s / 60), (long long)(s % 60));
    else if (s < 86400)
        bs_buf_fmt(b, "%lldh%lldm", (long long)(s / 3600), (long long)(s / 60 % 60));
    else
        bs_buf_fmt(b, "%lldd%lldh", (long long)(s / 86400), (long long)(s / 3600 % 24));
}

static void add_limit(struct bs_buf *b, bool begins, int64_t limit)
{
    bs_buf_addz(b, begins ? " (limit " : ", below 80% of the limit of ");
    bs_buf_add_i64(b, limit);
    if (begins)
        bs_buf_addc(b, ')');
}

static void add_limit_age(struct bs_buf *b, bool begins, struct bs_span limit)
{
    bs_buf_addz(b, begins ? " (limit " : ", below the limit of ");
    bs_span_write(b, limit);
    if (begins)
        bs_buf_addc(b, ')');
}

/* ---- verdicts ---- */

static bool is_open(const struct judge *j, const char *kind, struct bs_str subject)
{
    for (uint32_t i = 0; i < j->j->open_n; i++)
        if (bs_str_is(j->j->open[i].kind, kind) && bs_str_eq(j->j->open[i].subject, subject))
            return true;
    return false;
}

static void say(struct judge *j, bool begins, const char *kind, struct bs_str subject,
                const struct bs_buf *message)
{
    struct bs_alert_verdict *v = &j->ret[j->n++];

    v->begins = begins;
    v->kind = kind;
    copy(v->subject, sizeof(v->subject), subject);
    copy(v->message, sizeof(v->message), bs_buf_str(message));
}

static bool is_gated(const struct bs_alert_figures *f)
{
    return f->paused || f->breaker_open;
}

/* What a level does to its alert: 1 begins, -1 ends, 0 nothing. Without a limit it ends. */
static int level(bool open, int64_t figure, int64_t limit)
{
    if (open)
        return limit <= 0 || figure < limit - limit / 5 ? -1 : 0;
    return limit > 0 && figure >= limit ? 1 : 0;
}

static int age(bool open, struct bs_span figure, struct bs_span limit)
{
    if (open)
        return limit.us <= 0 || figure.us < limit.us ? -1 : 0;
    return limit.us > 0 && figure.us >= limit.us ? 1 : 0;
}

static void not_watched(struct judge *j, const char *kind, struct bs_str subject)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 400 };

    bs_buf_fmt(&b, "%s of %.*s is no longer watched", kind, BS_STR_FMT(subject));
    say(j, false, kind, subject, &b);
}

/* ---- levels ---- */

static void judge_growth(struct judge *j)
{
    static const char kind[] = "manual_growth";
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 400 };
    const struct bs_alert_figures *f = j->j->figures;
    int64_t grown = f->manual - f->manual_low, limit = j->j->limits->manual_growth;
    int what = level(is_open(j, kind, f->biz_type), grown, limit);

    /* After a start nobody knows yet how many there were. */
    if (what == 0 || (what < 0 && limit > 0 && !f->window_full))
        return;
    if (limit <= 0) {
        not_watched(j, kind, f->biz_type);
        return;
    }
    bs_buf_addz(&b, "MANUAL of ");
    add_queue(&b, j);
    bs_buf_fmt(&b, " grew by %lld task%s within ", (long long)grown, grown == 1 ? "" : "s");
    bs_span_write(&b, j->j->window);
    add_limit(&b, what > 0, limit);
    say(j, what > 0, kind, f->biz_type, &b);
}

/* The tasks that piled up behind a gate are given time to run before they count as a backlog. */
static bool backlog_is_excused(const struct judge *j)
{
    const struct bs_alert_figures *f = j->j->figures;
    struct bs_span grace = j->j->limits->oldest_due;

    if (grace.us <= 0)
        grace = grace_default;
    return is_gated(f) ||
           (f->gated_last.us && bs_time_diff(j->j->now, f->gated_last).us < grace.us);
}

static void judge_backlog(struct judge *j)
{
    static const char kind[] = "backlog";
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 400 };
    const struct bs_alert_figures *f = j->j->figures;
    int64_t limit = j->j->limits->backlog;
    int what = level(is_open(j, kind, f->biz_type), f->backlog, limit);

    if (what == 0 || (what > 0 && backlog_is_excused(j)))
        return;
    if (limit <= 0) {
        not_watched(j, kind, f->biz_type);
        return;
    }
    add_queue(&b, j);
    bs_buf_fmt(&b, " has %lld task%s in WAITING and RETRY", (long long)f->backlog,
               f->backlog == 1 ? "" : "s");
    add_limit(&b, what > 0, limit);
    say(j, what > 0, kind, f->biz_type, &b);
}

static void judge_unknown(struct judge *j)
{
    static const char kind[] = "unknown";
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 400 };
    const struct bs_alert_figures *f = j->j->figures;
    int64_t limit = j->j->limits->unknown;
    int what = level(is_open(j, kind, f->biz_type), f->unknown, limit);

    if (what == 0)
        return;
    if (limit <= 0) {
        not_watched(j, kind, f->biz_type);
        return;
    }
    bs_buf_fmt(&b, "the outcome of %lld task%s of ", (long long)f->unknown,
               f->unknown == 1 ? "" : "s");
    add_queue(&b, j);
    bs_buf_addz(&b, " is unknown");
    add_limit(&b, what > 0, limit);
    say(j, what > 0, kind, f->biz_type, &b);
}

static void add_money(struct bs_buf *b, const char *currency, int64_t amount)
{
    struct bs_money m = { .minor = amount };

    copy(m.currency, sizeof(m.currency), bs_str_of(currency));
    bs_money_write(b, m);
}

static int64_t exposed(const struct bs_alert_figures *f, const char *currency)
{
    for (uint32_t i = 0; i < f->exposure_n; i++)
        if (strcmp(f->exposure[i].currency, currency) == 0)
            return f->exposure[i].amount;
    return 0;
}

static struct bs_str exposure_subject(const struct judge *j, const char *currency, char room[40])
{
    struct bs_str q = j->j->figures->biz_type;
    size_t n = BS_MIN(q.n, (size_t)32);

    if (n)
        memcpy(room, q.p, n);
    room[n++] = ' ';
    copy(room + n, 40 - n, bs_str_of(currency));
    return bs_str_of(room);
}

static void judge_exposure(struct judge *j, const struct bs_exposure_limit *l)
{
    static const char kind[] = "exposure";
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 400 };
    char room[40];
    struct bs_str subject = exposure_subject(j, l->currency, room);
    int64_t amount = exposed(j->j->figures, l->currency);
    int what = level(is_open(j, kind, subject), amount, l->amount);

    if (what == 0)
        return;
    add_money(&b, l->currency, amount);
    bs_buf_addz(&b, " are not settled in ");
    add_queue(&b, j);
    bs_buf_addz(&b, what > 0 ? " (limit " : ", below 80% of the limit of ");
    add_money(&b, l->currency, l->amount);
    if (what > 0)
        bs_buf_addc(&b, ')');
    say(j, what > 0, kind, subject, &b);
}

static bool is_limited(const struct judge *j, struct bs_str subject)
{
    char room[40];
    uint32_t n = BS_MIN(j->j->limits->exposure_n, (uint32_t)BS_EXPOSURE_MAX);

    for (uint32_t i = 0; i < n; i++) {
        const struct bs_exposure_limit *l = &j->j->limits->exposure[i];

        if (l->amount > 0 && bs_str_eq(subject, exposure_subject(j, l->currency, room)))
            return true;
    }
    return false;
}

static void judge_exposures(struct judge *j)
{
    uint32_t n = BS_MIN(j->j->limits->exposure_n, (uint32_t)BS_EXPOSURE_MAX);

    for (uint32_t i = 0; i < n; i++)
        if (j->j->limits->exposure[i].amount > 0)
            judge_exposure(j, &j->j->limits->exposure[i]);
    for (uint32_t i = 0; i < j->j->open_n; i++) {
        const struct bs_alert_open *o = &j->j->open[i];

        if (bs_str_is(o->kind, "exposure") && !is_limited(j, o->subject))
            not_watched(j, "exposure", o->subject);
    }
}

/* ---- ages ---- */

static struct bs_span since(const struct judge *j, struct bs_time t)
{
    return t.us ? bs_time_diff(j->j->now, t) : BS_US(0);
}

static void judge_manual_age(struct judge *j)
{
    static const char kind[] = "manual_age";
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 400 };
    const struct bs_alert_figures *f = j->j->figures;
    struct bs_span waited = since(j, f->oldest_manual), limit = j->j->limits->manual_age;
    int what = age(is_open(j, kind, f->biz_type), waited, limit);

    if (what == 0)
        return;
    if (limit.us <= 0) {
        not_watched(j, kind, f->biz_type);
        return;
    }
    bs_buf_addz(&b, f->oldest_manual.us ? "the oldest task of " : "no task of ");
    add_queue(&b, j);
    bs_buf_addz(&b, f->oldest_manual.us ? " in MANUAL has waited " : " is in MANUAL");
    if (f->oldest_manual.us) {
        add_age(&b, waited);
        bs_buf_addz(&b, " for a person");
        add_limit_age(&b, what > 0, limit);
    }
    say(j, what > 0, kind, f->biz_type, &b);
}

/* For how long the oldest due task could have run and did not. */
static struct bs_span could_run(const struct judge *j)
{
    const struct bs_alert_figures *f = j->j->figures;
    struct bs_time from = bs_time_max(f->watched_since, f->gated_last);

    return f->oldest_due.us ? since(j, bs_time_max(from, f->oldest_due)) : BS_US(0);
}

static void judge_oldest_due(struct judge *j)
{
    static const char kind[] = "oldest_due";
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 400 };
    const struct bs_alert_figures *f = j->j->figures;
    struct bs_span waited = since(j, f->oldest_due), limit = j->j->limits->oldest_due;
    bool open = is_open(j, kind, f->biz_type);
    int what = age(open, open ? waited : could_run(j), limit);

    if (what == 0 || (what > 0 && is_gated(f)))
        return;
    if (limit.us <= 0) {
        not_watched(j, kind, f->biz_type);
        return;
    }
    bs_buf_addz(&b, f->oldest_due.us ? "the oldest due task of " : "no task of ");
    add_queue(&b, j);
    bs_buf_addz(&b, f->oldest_due.us ? " has waited " : " is due");
    if (f->oldest_due.us) {
        add_age(&b, waited);
        add_limit_age(&b, what > 0, limit);
    }
    say(j, what > 0, kind, f->biz_type, &b);
}

/* ---- switches ---- */

struct words {
    const char *before, *on, *off; /* around the queue's name */
};

static void judge_switch(struct judge *j, const char *kind, bool on, const struct words *words,
                         struct bs_str why)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 500 };
    struct bs_str subject = j->j->figures->biz_type;

    if (on == is_open(j, kind, subject))
        return;
    bs_buf_addz(&b, words->before);
    bs_buf_add(&b, subject);
    bs_buf_addz(&b, on ? words->on : words->off);
    if (on && why.n) {
        bs_buf_addz(&b, ": ");
        bs_buf_add(&b, (struct bs_str){ why.p, BS_MIN(why.n, (size_t)300) });
    }
    say(j, on, kind, subject, &b);
}

static void judge_pause(struct judge *j)
{
    static const struct words words = { "", " is paused", " is not paused any more" };

    judge_switch(j, "pause", j->j->figures->paused, &words, j->j->figures->pause_why);
}

static void judge_breaker(struct judge *j)
{
    static const struct words words = { "the breaker of ", " is open", " is closed again" };

    judge_switch(j, "breaker", j->j->figures->breaker_open, &words, j->j->figures->breaker_why);
}

uint32_t bs_alert_judge(const struct bs_alert_judgement *j, struct bs_alert_verdict *ret)
{
    struct judge all = { .j = j, .ret = ret };

    judge_pause(&all);
    judge_breaker(&all);
    judge_growth(&all);
    judge_manual_age(&all);
    judge_oldest_due(&all);
    judge_backlog(&all);
    judge_unknown(&all);
    judge_exposures(&all);
    return all.n;
}
