/* Load generator: submits tasks over keep-alive connections from one thread and prints one line of
 * JSON: tasks a second, latency percentiles, how many replies were not 201 or 200.
 *
 * load PORT TOKEN CONNECTIONS TASKS ordered|random BATCH [QUEUE [DELAY [NAME=VALUE...]]]
 *   first=N    the number of the first task, so that a store can be loaded more than once
 *   order=TEXT the order number of all tasks, so that at most one runs at a time
 *   rate=N     N tasks a second instead of as fast as replies come; a latency then begins when the
 *              request was due, so that waiting for a free connection counts
 *   seconds=N  ends after N seconds (or TASKS)
 *   every=N    prints a line like the last one for each N seconds */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { PAYLOAD = 500, REPLY_MAX = 512 << 10 };

struct connection {
    int fd;
    char *out;
    size_t out_len, out_sent;
    char *in;
    size_t in_len;
    double began;
};

struct load {
    const char *token, *queue, *delay, *order;
    uint64_t first, sent, answered, refused, total, seed;
    int random, batch, port;
    double rate, seconds, every, began, told_at;
    double *latencies;
    size_t latencies_n, told_n;
    uint64_t told_answered;
    struct connection **idle;
    int idle_n;
    char payload[PAYLOAD + 1];
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t next_random(struct load *l)
{
    l->seed ^= l->seed << 13;
    l->seed ^= l->seed >> 7;
    l->seed ^= l->seed << 17;
    return l->seed;
}

static int write_task(struct load *l, char *out, size_t room)
{
    char id[40], order[40];
    uint64_t n = l->first + l->sent++;

    if (l->random)
        snprintf(id, sizeof(id), "%016llx%016llx", (unsigned long long)next_random(l),
                 (unsigned long long)next_random(l));
    else
        snprintf(id, sizeof(id), "PAY20261130%021llu", (unsigned long long)n);
    snprintf(order, sizeof(order), "O20261130%012llu", (unsigned long long)n);
    return snprintf(out, room,
                    "{\"request_id\":\"%s\",\"biz_type\":\"%s\",\"biz_id\":\"B20261130%012llu\","
                    "\"order_no\":\"%s\",\"delay\":\"%s\",\"payload\":%s}",
                    id, l->queue, (unsigned long long)n, l->order ? l->order : order, l->delay,
                    l->payload);
}

static void prepare(struct load *l, struct connection *c)
{
    size_t room = (size_t)l->batch * (PAYLOAD + 400) + 1024;
    char *body = c->out + 512;
    size_t n = 0;

    for (int i = 0; i < l->batch && l->sent < l->total; i++) {
        n += (size_t)write_task(l, body + n, room - n);
        if (l->batch > 1)
            body[n++] = '\n';
    }
    int head =
        snprintf(c->out, 512,
                 "POST /v1/tasks%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
                 "Content-Type: application/%s\r\nContent-Length: %zu\r\n\r\n",
                 l->batch > 1 ? "/batch" : "", l->token, l->batch > 1 ? "x-ndjson" : "json", n);
    memmove(c->out + head, body, n);
    c->out_len = (size_t)head + n;
    c->out_sent = 0;
    c->in_len = 0;
    c->began = now_s();
}

static int push(struct connection *c)
{
    while (c->out_sent < c->out_len) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        c->out_sent += (size_t)n;
    }
    return 0;
}

/* 1: a whole reply is there; 0: more to come; -1: the connection is gone. */
static int pull(struct connection *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_len, REPLY_MAX - 1 - c->in_len, 0);

    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -1;
    c->in_len += (size_t)n;
    c->in[c->in_len] = '\0';
    char *end = strstr(c->in, "\r\n\r\n");
    char *length = end ? strcasestr(c->in, "\r\ncontent-length:") : NULL;
    if (!length)
        return 0;
    return c->in_len >= (size_t)(end - c->in) + 4 + strtoul(length + 17, NULL, 10);
}

static void count_reply(struct load *l, struct connection *c)
{
    int status = atoi(c->in + 9);

    l->latencies[l->latencies_n++] = now_s() - c->began;
    if (status != 201 && status != 200) {
        if (l->refused++ == 0)
            fprintf(stderr, "load: first refusal: %.300s\n", c->in);
    } else if (l->batch > 1) {
        for (char *p = c->in; (p = strstr(p, "\"status\":")); p += 9)
            l->answered += strncmp(p + 9, "201", 3) == 0;
    } else {
        l->answered++;
    }
}

static int connect_one(struct load *l, struct connection *c, int ep)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)l->port) };
    int one = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        return -1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->out = malloc((size_t)l->batch * (PAYLOAD + 400) + 2048);
    c->in = malloc(REPLY_MAX);
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    return epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* What came since the latency number `from`, in `took` seconds. */
static void tell(struct load *l, size_t from, uint64_t answered, double took)
{
    double *part = l->latencies + from;
    size_t n = l->latencies_n - from;

    qsort(part, n, sizeof(double), by_value);
    printf("{\"tasks\": %llu, \"refused\": %llu, \"seconds\": %.3f, \"per_second\": %.0f, "
           "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n",
           (unsigned long long)answered, (unsigned long long)l->refused, took,
           (double)answered / took, n ? 1e3 * part[n / 2] : 0,
           n ? 1e3 * part[(size_t)((double)n * 0.99)] : 0, n ? 1e3 * part[n - 1] : 0);
    fflush(stdout);
}

static void tell_each(struct load *l, double now)
{
    if (l->every <= 0 || now - l->told_at < l->every)
        return;
    tell(l, l->told_n, l->answered - l->told_answered, now - l->told_at);
    l->told_at = now;
    l->told_n = l->latencies_n;
    l->told_answered = l->answered;
}

/* Sends what is due on connections that are free. */
static int send_due(struct load *l, double now)
{
    while (l->idle_n > 0 && l->sent < l->total) {
        double due = l->rate > 0 ? l->began + (double)l->sent / l->rate : now;

        if (due > now)
            return 0;
        /* The one that rested longest, so that none rests until the server closes it. */
        struct connection *c = l->idle[0];

        memmove(l->idle, l->idle + 1, (size_t)--l->idle_n * sizeof(l->idle[0]));
        prepare(l, c);
        c->began = l->rate > 0 ? due : c->began;
        if (push(c) != 0)
            return -1;
    }
    return 0;
}

static int on_ready(struct load *l, struct connection *c)
{
    int whole = pull(c);

    if (whole < 0)
        return -1;
    if (!whole)
        return c->out_sent < c->out_len ? push(c) : 0;
    count_reply(l, c);
    l->idle[l->idle_n++] = c;
    return 0;
}

static int run(struct load *l, int n, int ep)
{
    struct epoll_event events[256];
    double now = now_s(), last = now;

    while (l->sent < l->total || l->idle_n < n) {
        if (send_due(l, now) != 0)
            return -1;
        int got = epoll_wait(ep, events, 256, l->rate > 0 ? 1 : 1000);
        if (got < 0)
            return -1;
        for (int i = 0; i < got; i++)
            if (on_ready(l, events[i].data.ptr) != 0)
                return -1;
        now = now_s();
        last = got > 0 || l->idle_n == n ? now : last;
        if (now - last > 15)
            return -1;
        if (l->seconds > 0 && now - l->began >= l->seconds)
            l->total = l->sent;
        tell_each(l, now);
    }
    return 0;
}

static int set_option(struct load *l, const char *option)
{
    const char *value = strchr(option, '=') ? strchr(option, '=') + 1 : "";

    if (strncmp(option, "first=", 6) == 0)
        l->first = strtoull(value, NULL, 10);
    else if (strncmp(option, "order=", 6) == 0)
        l->order = value;
    else if (strncmp(option, "rate=", 5) == 0)
        l->rate = atof(value);
    else if (strncmp(option, "seconds=", 8) == 0)
        l->seconds = atof(value);
    else if (strncmp(option, "every=", 6) == 0)
        l->every = atof(value);
    else
        return fprintf(stderr, "load: unknown option %s\n", option);
    return 0;
}

static int connect_all(struct load *l, int n, int ep)
{
    struct connection *all = calloc((size_t)n, sizeof(*all));

    l->idle = calloc((size_t)n, sizeof(struct connection *));
    for (int i = 0; i < n; i++) {
        if (connect_one(l, &all[i], ep) != 0) {
            perror("load: connect");
            return -1;
        }
        l->idle[l->idle_n++] = &all[i];
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        fprintf(stderr, "usage: load PORT TOKEN CONNECTIONS TASKS ordered|random BATCH "
                        "[QUEUE [DELAY [NAME=VALUE...]]]\n");
        return 2;
    }
    struct load l = { .port = atoi(argv[1]),
                      .token = argv[2],
                      .total = strtoull(argv[4], NULL, 10),
                      .random = strcmp(argv[5], "random") == 0,
                      .batch = atoi(argv[6]),
                      .queue = argc > 7 ? argv[7] : "PAY_CALLBACK",
                      .delay = argc > 8 ? argv[8] : "1h",
                      .seed = 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() };
    int n = atoi(argv[3]);

    for (int i = 9; i < argc; i++)
        if (set_option(&l, argv[i]) != 0)
            return 2;
    memset(l.payload, 'x', PAYLOAD);
    memcpy(l.payload, "{\"raw\":\"", 8);
    memcpy(l.payload + PAYLOAD - 2, "\"}", 2);
    l.latencies = malloc(sizeof(double) * (l.total + (uint64_t)n));
    int ep = epoll_create1(0);
    if (connect_all(&l, n, ep) != 0)
        return 1;
    l.began = l.told_at = now_s();
    int rc = run(&l, n, ep);
    tell(&l, 0, l.answered, now_s() - l.began);
    return rc != 0 || l.answered != l.total;
}
