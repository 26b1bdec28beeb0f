/* Load generator: submits tasks over keep-alive connections from one thread and prints one line of
 * JSON: tasks a second, latency percentiles, how many replies were not 201 or 200.
 *
 * load PORT TOKEN CONNECTIONS TASKS ordered|random BATCH [QUEUE [DELAY]] */
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
    const char *token, *queue, *delay;
    uint64_t sent, answered, refused, total, seed;
    int random, batch, port;
    double *latencies;
    size_t latencies_n;
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
    char id[40];
    uint64_t n = l->sent++;

    if (l->random)
        snprintf(id, sizeof(id), "%016llx%016llx", (unsigned long long)next_random(l),
                 (unsigned long long)next_random(l));
    else
        snprintf(id, sizeof(id), "PAY20261130%021llu", (unsigned long long)n);
    return snprintf(out, room,
                    "{\"request_id\":\"%s\",\"biz_type\":\"%s\",\"biz_id\":\"B20261130%012llu\","
                    "\"order_no\":\"O20261130%012llu\",\"delay\":\"%s\",\"payload\":%s}",
                    id, l->queue, (unsigned long long)n, (unsigned long long)n, l->delay,
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

static int run(struct load *l, struct connection *all, int n, int ep)
{
    int open = n;
    struct epoll_event events[256];

    for (int i = 0; i < n; i++) {
        prepare(l, &all[i]);
        if (push(&all[i]) != 0)
            return -1;
    }
    while (open > 0) {
        int got = epoll_wait(ep, events, 256, 15000);

        if (got <= 0)
            return -1;
        for (int i = 0; i < got; i++) {
            struct connection *c = events[i].data.ptr;
            int whole = pull(c);

            if (whole < 0)
                return -1;
            if (!whole) {
                if (c->out_sent < c->out_len && push(c) != 0)
                    return -1;
                continue;
            }
            count_reply(l, c);
            if (l->sent >= l->total) {
                open--;
                epoll_ctl(ep, EPOLL_CTL_DEL, c->fd, NULL);
                continue;
            }
            prepare(l, c);
            if (push(c) != 0)
                return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        fprintf(stderr,
                "usage: load PORT TOKEN CONNECTIONS TASKS ordered|random BATCH [QUEUE [DELAY]]\n");
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
    struct connection *all = calloc((size_t)n, sizeof(*all));
    int ep = epoll_create1(0);

    memset(l.payload, 'x', PAYLOAD);
    memcpy(l.payload, "{\"raw\":\"", 8);
    memcpy(l.payload + PAYLOAD - 2, "\"}", 2);
    l.latencies = malloc(sizeof(double) * (l.total + (uint64_t)n));
    for (int i = 0; i < n; i++) {
        if (connect_one(&l, &all[i], ep) != 0) {
            perror("load: connect");
            return 1;
        }
    }
    double began = now_s();
    int rc = run(&l, all, n, ep);
    double took = now_s() - began;
    qsort(l.latencies, l.latencies_n, sizeof(double), by_value);
    printf("{\"tasks\": %llu, \"refused\": %llu, \"seconds\": %.3f, \"per_second\": %.0f, "
           "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n",
           (unsigned long long)l.answered, (unsigned long long)l.refused, took,
           (double)l.answered / took, 1e3 * l.latencies[l.latencies_n / 2],
           1e3 * l.latencies[(size_t)((double)l.latencies_n * 0.99)],
           1e3 * l.latencies[l.latencies_n - 1]);
    return rc != 0 || l.answered != l.total;
}
