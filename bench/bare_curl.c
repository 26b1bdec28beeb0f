/* Yardstick: a bare libcurl loop that posts 500 bytes to the sink, N in flight. bare_curl URL CALLS
 * N */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static size_t drop(char *p, size_t size, size_t n, void *ctx)
{
    (void)p, (void)ctx;
    return size * n;
}

int main(int argc, char **argv)
{
    long calls = argc > 2 ? atol(argv[2]) : 100000, started = 0, ended = 0, failed = 0;
    int flight = argc > 3 ? atoi(argv[3]) : 64, running, left;
    char body[501];
    struct timespec a, b;
    CURLMsg *m;

    if (argc < 2)
        return 2;
    memset(body, 'x', 500);
    CURLM *multi = curl_multi_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)flight * 2);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (; started < flight; started++) {
        CURL *e = curl_easy_init();

        curl_easy_setopt(e, CURLOPT_URL, argv[1]);
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE, 500L);
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, drop);
        curl_multi_add_handle(multi, e);
    }
    while (ended < calls) {
        curl_multi_perform(multi, &running);
        while ((m = curl_multi_info_read(multi, &left))) {
            CURL *e = m->easy_handle;

            failed += m->data.result != CURLE_OK;
            ended++;
            curl_multi_remove_handle(multi, e);
            if (started < calls && ++started)
                curl_multi_add_handle(multi, e);
        }
        curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    printf("{\"calls\": %ld, \"failed\": %ld, \"per_second\": %.0f}\n", ended, failed,
           (double)ended / s);
    return failed != 0;
}
