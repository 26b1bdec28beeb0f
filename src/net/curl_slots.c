/* Easy handles and the multi handles they belong to, kept from call to call. */
#include "net/curl_internal.h"

#include <stdlib.h>

enum { URL_MAX = 8192, BODY_KEPT = 16 << 10, FREE_KEPT = 512 };

/* Idle connections beyond those in use; the oldest of them go first. */
static long connections_max(const struct curl_caller *c)
{
    return BS_SHARD_SLOTS + (long)BS_MIN(c->connections_max, (uint32_t)BS_SHARD_SLOTS);
}

static struct shard *new_shard(struct curl_caller *c)
{
    struct shard *h = c->shards_n < BS_SHARDS_MAX ? calloc(1, sizeof(*h)) : NULL;

    if (!h)
        return NULL;
    *h = (struct shard){ .owner = c, .multi = curl_multi_init(), .due_us = INT64_MAX };
    if (!h->multi) {
        free(h);
        return NULL;
    }
    curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, bs_curl_on_socket);
    curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, bs_curl_on_timer);
    curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    curl_multi_setopt(h->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, connections_max(c));
    c->shards[c->shards_n++] = h;
    return h;
}

static struct shard *shard_with_room(struct curl_caller *c)
{
    for (uint32_t i = 0; i < c->shards_n; i++)
        if (c->shards[i]->slots_n < BS_SHARD_SLOTS)
            return c->shards[i];
    return new_shard(c);
}

static bool remember(struct curl_caller *c, struct slot *s)
{
    if (c->slots_n == c->slots_cap) {
        uint32_t cap = c->slots_cap ? c->slots_cap * 2 : 64;
        struct slot **slots = realloc(c->slots, cap * sizeof(struct slot *));

        if (!slots)
            return false;
        c->slots = slots;
        c->slots_cap = cap;
    }
    s->at = c->slots_n;
    c->slots[c->slots_n++] = s;
    s->shard->slots_n++;
    return true;
}

static void slot_free(struct slot *s)
{
    if (s->easy)
        curl_easy_cleanup(s->easy);
    bs_buf_free(&s->url);
    bs_buf_free(&s->body);
    free(s);
}

static struct slot *new_slot(struct curl_caller *c)
{
    struct shard *h = shard_with_room(c);
    struct slot *s = h ? calloc(1, sizeof(*s)) : NULL;

    if (!s)
        return NULL;
    s->owner = c;
    s->shard = h;
    s->url.max = URL_MAX;
    s->body.max = BS_REPLY_BODY_MAX;
    s->easy = curl_easy_init();
    if (!s->easy || !remember(c, s)) {
        slot_free(s);
        return NULL;
    }
    bs_curl_set_constant(s);
    return s;
}

/* The handle given back last: its shard holds the warmest connections. */
struct slot *bs_curl_slot_take(struct curl_caller *c)
{
    struct slot *s = c->free_slots;

    if (!s)
        return new_slot(c);
    c->free_slots = s->next_free;
    c->free_n--;
    s->next_free = NULL;
    return s;
}

static void forget(struct slot *s)
{
    struct curl_caller *c = s->owner;

    c->slots[s->at] = c->slots[--c->slots_n];
    c->slots[s->at]->at = s->at;
    s->shard->slots_n--;
    slot_free(s);
}

void bs_curl_slot_give_back(struct slot *s)
{
    struct curl_caller *c = s->owner;

    s->call = NULL;
    s->stage = STAGE_FREE;
    if (c->free_n >= FREE_KEPT) {
        forget(s);
        return;
    }
    if (s->body.cap > BODY_KEPT)
        bs_buf_free(&s->body);
    s->next_free = c->free_slots;
    c->free_slots = s;
    c->free_n++;
}

void bs_curl_slots_free(struct curl_caller *c)
{
    for (uint32_t i = 0; i < c->slots_n; i++)
        slot_free(c->slots[i]);
    for (uint32_t i = 0; i < c->shards_n; i++) {
        curl_multi_cleanup(c->shards[i]->multi);
        free(c->shards[i]);
    }
    free(c->slots);
}
