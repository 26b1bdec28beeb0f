/* What the files of the curl caller share. One thread owns all of it. */
#pragma once

#include "base/buf.h"
#include "net/caller.h"
#include "net/resolver.h"

#include <curl/curl.h>
#include <sys/epoll.h>

enum { BS_REPLY_BODY_MAX = 64 << 10, BS_REPLY_HEADERS_MAX = 64 << 10, BS_LOCATION_MAX = 2048 };
enum { BS_EVENTS_MAX = 256, BS_SHARD_SLOTS = 256, BS_SHARDS_MAX = 64 };

enum stage { STAGE_FREE, STAGE_RESOLVING, STAGE_RUNNING };

struct curl_caller;

/* One multi handle. curl walks all connections of a multi at the end of every call, so that beside
 * thousands of hanging calls the live ones would crawl: a shard holds a bounded number of them. */
struct shard {
    struct curl_caller *owner;
    CURLM *multi;
    uint32_t slots_n;
    int64_t due_us; /* INT64_MAX: curl needs no timer */
};

/* One easy handle, kept and used for call after call; only what changed is set again. */
struct slot {
    CURL *easy;
    struct curl_caller *owner;
    struct shard *shard;
    uint32_t at;          /* index in the caller's slots */
    struct bs_call *call; /* NULL when free */
    enum stage stage;
    struct slot *next_free;
    struct slot *next_resolving, **at_resolving;
    /* what the handle was last given */
    struct bs_buf url;
    char host[BS_HOST_MAX];
    uint16_t port;
    bool ask_name; /* the host is a name that has to be looked up */
    const char *method;
    long connect_ms, timeout_ms;
    /* of the call under way */
    int64_t started_us;
    struct bs_resolve question;
    struct curl_slist resolve_node;
    char resolve_text[BS_HOST_MAX + BS_ADDRESSES_MAX + 16];
    struct bs_buf body;
    size_t header_bytes;
    uint32_t sends;      /* how often curl was about to send the request */
    bool resend_refused; /* … and the second one was forbidden           */
    bool headers_cut, body_cut;
    char error[CURL_ERROR_SIZE];
};

/* What one descriptor is watched for: by curl's wish, and in fact. The two differ for a while,
 * because an unneeded event is cheaper than two system calls for every call. */
struct watch {
    struct shard *shard;
    uint8_t want, have;
};

struct curl_caller {
    struct bs_caller base;
    struct shard *shards[BS_SHARDS_MAX];
    uint32_t shards_n;
    struct bs_resolver *resolver;
    struct bs_clock *clock;
    char *ca_file;
    char user_agent[40];
    uint32_t connections_max;
    /* handles */
    struct slot **slots;
    uint32_t slots_n, slots_cap, free_n;
    struct slot *free_slots;
    struct slot *resolving;
    struct bs_call *done, **done_end;
    /* the loop */
    int epoll_fd;
    int mail_fd; /* the mailbox eventfd in the epoll set; -1 */
    struct watch *watches;
    size_t watches_n;
    struct epoll_event events[BS_EVENTS_MAX];
    int events_n;
    int64_t name_due_us; /* no look-up times out before    */
    bool names_came;     /* the resolver has results       */
};

/* curl_slots.c: handles, kept between calls */
struct slot *bs_curl_slot_take(struct curl_caller *c); /* NULL: no memory, or too many calls */
void bs_curl_slot_give_back(struct slot *s);
void bs_curl_slots_free(struct curl_caller *c); /* none may be in a multi handle */

/* curl_easy.c: what a handle is told */
void bs_curl_set_constant(struct slot *s);
/* Whether the call's URL can be called at all, and where its host is. */
BS_NODISCARD bool bs_curl_set_url(struct slot *s, const char *url);
BS_NODISCARD bool bs_curl_set_call(struct slot *s, int64_t now_us);

/* curl_facts.c: what came back */
size_t bs_curl_on_header(char *p, size_t size, size_t n, void *slot);
size_t bs_curl_on_body(char *p, size_t size, size_t n, void *slot);
int bs_curl_on_send(void *slot, char *peer_ip, char *local_ip, int peer_port, int local_port);
void bs_curl_judge(struct slot *s, CURLcode code);
void bs_curl_set_facts(struct slot *s, enum bs_wire wire, const char *detail);

/* curl_loop.c: descriptors and timers */
int bs_curl_on_socket(CURL *easy, curl_socket_t fd, int what, void *shard, void *unused);
int bs_curl_on_timer(CURLM *multi, long timeout_ms, void *shard);
int bs_curl_on_close(void *caller, curl_socket_t fd);
void bs_curl_loop_run(struct curl_caller *c);
void bs_curl_loop_wait(struct curl_caller *c, struct bs_mailbox *mail, int64_t until_us);
BS_NODISCARD bs_rc bs_curl_loop_init(struct curl_caller *c, struct bs_err *err);
void bs_curl_loop_done(struct curl_caller *c);
