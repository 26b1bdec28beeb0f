/* How long from the start of a submission, its durable commit included, until the consumer sees it;
 * one at a time on an idle server. pickup backstop PORT TOKEN HANDLER_PORT COUNT | pickup
 * beanstalkd PORT COUNT */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 16 };

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int dial(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        perror("pickup: connect");
        exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void put(int fd, const char *text, size_t n)
{
    if (send(fd, text, n, MSG_NOSIGNAL) != (ssize_t)n)
        exit(1);
}

/* Reads until `mark` has been seen `times` times in all that came. */
static void await(int fd, const char *mark, char *in)
{
    size_t n = 0;

    do {
        ssize_t got = recv(fd, in + n, ROOM - 1 - n, 0);

        if (got <= 0)
            exit(1);
        n += (size_t)got;
        in[n] = '\0';
    } while (!strstr(in, mark));
}

static int listen_on(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 16) != 0)
        exit(1);
    return fd;
}

/* The handler's side: accepts when needed, reads one request, answers. Gives when its first byte
 * came. */
static double serve_one(int listener, int *conn)
{
    static const char done[] = "HTTP/1.1 204 No Content\r\n\r\n";
    char in[ROOM];
    double seen = 0;

    for (;;) {
        struct pollfd p[2] = { { .fd = listener, .events = POLLIN },
                               { .fd = *conn, .events = POLLIN } };

        if (poll(p, *conn >= 0 ? 2 : 1, 10000) <= 0)
            exit(1);
        if (p[0].revents) {
            if (*conn >= 0)
                close(*conn);
            *conn = accept(listener, NULL, NULL);
            continue;
        }
        ssize_t n = recv(*conn, in, sizeof(in) - 1, 0);
        if (n <= 0) {
            close(*conn);
            *conn = -1;
            continue;
        }
        seen = now_ms();
        in[n] = '\0';
        while (!strstr(in, "\"order\":")) { /* the last member of the body */
            ssize_t more = recv(*conn, in + n, sizeof(in) - 1 - (size_t)n, 0);

            if (more <= 0)
                exit(1);
            n += more;
            in[n] = '\0';
        }
        put(*conn, done, sizeof(done) - 1);
        return seen;
    }
}

static void run_backstop(int port, const char *token, int handler, int count, double *took)
{
    char text[2048], body[1024], payload[501], in[ROOM];
    int api = dial(port), listener = listen_on(handler), conn = -1;

    memset(payload, 'x', 500);
    payload[0] = payload[499] = '"';
    payload[500] = '\0';
    for (int i = 0; i < count; i++) {
        int n = snprintf(body, sizeof(body),
                         "{\"request_id\":\"pickup-%d-%d\",\"biz_type\":\"PAY_CALLBACK\",\"biz_"
                         "id\":\"p%d-%d\",\"payload\":%s}",
                         (int)getpid(), i, (int)getpid(), i, payload);
        n = snprintf(text, sizeof(text),
                     "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                     "%s\r\nContent-Type: application/json\r\n"
                     "Content-Length: %d\r\n\r\n%s",
                     token, n, body);
        double began = now_ms();
        put(api, text, (size_t)n);
        took[i] = serve_one(listener, &conn) - began;
        await(api, "\r\n\r\n{", in);
        usleep(3000); /* idle again: its settlement is committed */
    }
}

static void run_beanstalkd(int port, int count, double *took)
{
    char text[1024], payload[501], in[ROOM];
    int producer = dial(port), worker = dial(port);

    memset(payload, 'x', 500);
    payload[500] = '\0';
    for (int i = 0; i < count; i++) {
        put(worker, "reserve\r\n", 9);
        usleep(1000);
        int n = snprintf(text, sizeof(text), "put 0 0 60 500\r\n%s\r\n", payload);
        double began = now_ms();
        put(producer, text, (size_t)n);
        await(worker, "xx\r\n", in);
        took[i] = now_ms() - began;
        n = snprintf(text, sizeof(text), "delete %s\r\n", strtok_r(in + 9, " ", &(char *){ NULL }));
        put(worker, text, (size_t)n);
        await(worker, "\r\n", in);
        await(producer, "\r\n", in);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int backstop = argc > 5 && strcmp(argv[1], "backstop") == 0;

    if (!backstop && argc < 4)
        return 2;
    int count = atoi(backstop ? argv[5] : argv[3]);
    double *took = calloc((size_t)count, sizeof(double));
    if (backstop)
        run_backstop(atoi(argv[2]), argv[3], atoi(argv[4]), count, took);
    else
        run_beanstalkd(atoi(argv[2]), count, took);
    qsort(took, (size_t)count, sizeof(double), by_value);
    printf("{\"count\": %d, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n", count,
           took[count / 2], took[(int)(count * 0.99)], took[count - 1]);
    return 0;
}
