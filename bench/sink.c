/* The sink that drained tasks are delivered to: answers every request with 204 (or, with `reply`,
 * the handler's JSON). Prints its port; ends when its standard input closes. sink [PORT] */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long long served;
static struct MHD_Response *empty;

static enum MHD_Result handle(void *ctx, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **state)
{
    (void)ctx, (void)url, (void)method, (void)version, (void)data;
    if (!*state) {
        *state = &served;
        return MHD_YES;
    }
    if (*size) {
        *size = 0;
        return MHD_YES;
    }
    served++;
    return MHD_queue_response(c, 204, empty);
}

int main(int argc, char **argv)
{
    char byte;
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((unsigned short)(argc > 1 ? atoi(argv[1]) : 0)) };

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    empty = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    struct MHD_Daemon *d = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle,
                                            NULL, MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_END);
    if (!d)
        return 1;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT);
    printf("%u\n", (unsigned)info->port);
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
        printf("%llu\n", served); /* one byte in: how many were served so far */
        fflush(stdout);
    }
    MHD_stop_daemon(d);
    return 0;
}
