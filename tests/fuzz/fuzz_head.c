/* The header lines of a reply as curl hands them over, one by one: Retry-After, Location and the
 * status line that begins anew; the same bytes also as body and as the library's words. */
#include "fuzz_outcome.h"
#include "net/curl_internal.h"
#include "sys/clock.h"

static const int statuses[] = { 200, 204, 301, 307, 404, 408, 409, 422, 429, 500, 503, 599 };

static void check_wait(const struct bs_retry_after *before, const struct bs_retry_after *after)
{
    BS_ASSERT(!after->clamped || after->given);
    BS_ASSERT(after->given || after->delay.us == 0);
    BS_ASSERT(after->delay.us >= 0 && after->delay.us <= BS_SEC(6 * 3600).us);
    BS_ASSERT(!before->given || after->delay.us >= before->delay.us);
}

static void feed(struct slot *s, struct bs_str head)
{
    while (head.n) {
        const char *end = memchr(head.p, '\n', head.n);
        size_t n = end ? (size_t)(end - head.p) + 1 : head.n;
        bool anew = bs_str_starts(head, BS_STR("HTTP/"));
        struct bs_retry_after before = s->call->facts.retry_after;
        BS_CLEANUP(bs_arena_free) struct bs_arena exact = { 0 };
        char *line = bs_arena_str(&exact, (struct bs_str){ head.p, n }).p
                         ? memcpy(bs_arena_alloc(&exact, n), head.p, n)
                         : NULL;

        size_t took = bs_curl_on_header(line, 1, n, s);
        BS_ASSERT(took == n || s->headers_cut);
        check_wait(anew ? &(struct bs_retry_after){ 0 } : &before, &s->call->facts.retry_after);
        BS_ASSERT(s->call->facts.location.n <= BS_LOCATION_MAX);
        head = (struct bs_str){ head.p + n, head.n - n };
    }
}

static void check_detail(const struct bs_facts *f)
{
    size_t n = strnlen(f->detail, sizeof(f->detail));

    BS_ASSERT(n < sizeof(f->detail));
    for (size_t i = 0; i < n; i++)
        BS_ASSERT(f->detail[i] >= 0x20 && f->detail[i] <= 0x7e);
}

static void classify(struct bs_facts *f, struct bs_arena *a)
{
    struct bs_task t = fuzz_task();
    struct bs_outcome o = bs_classify_call(&bs_policy_default, f, NULL, a);

    fuzz_check_outcome(&o, &bs_policy_default);
    if (!bs_classify_look(&t, f, NULL, a, &o))
        fuzz_check_outcome(&o, &bs_policy_default);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_call call = { .arena = &a };
    struct bs_clock_manual clock;
    struct curl_caller owner = { .clock = &clock.base };
    struct slot s = { .owner = &owner, .call = &call, .body = { .max = BS_REPLY_BODY_MAX } };

    if (n < 2)
        return 0;
    struct bs_str input = fuzz_input(data + 2, n - 2);
    bs_clock_manual_init(&clock, fuzz_now);
    feed(&s, input);
    size_t took = bs_curl_on_body((char *)(uintptr_t)input.p, 1, input.n, &s);
    BS_ASSERT(took == input.n && bs_str_eq(bs_buf_str(&s.body), input));
    bs_curl_set_facts(&s, data[0] % BS_WIRE_COUNT, bs_arena_str(&a, input).p);
    check_detail(&call.facts);
    call.facts.status = statuses[data[1] % BS_COUNT(statuses)];
    call.facts.sent = data[1] & 128;
    call.facts.body = bs_buf_str(&s.body);
    classify(&call.facts, &a);
    bs_buf_free(&s.body);
    return 0;
}
