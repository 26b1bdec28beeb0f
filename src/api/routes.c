/* Every route in one table: who may call it, what it takes, who answers it. */
#include "api/call.h"

enum {
    SUBMIT_MAX = 512 << 10,
    BATCH_MAX = 8 << 20,
    SMALL_MAX = 16 << 10,
};

static const char *const task_params[] = { "status",     "biz_type",     "order_no",
                                           "payment_no", "refund_no",    "channel_trade_no",
                                           "request_id", "biz_id",       "source",
                                           "error_code", "created_from", "created_to",
                                           "cursor",     "limit",        NULL };
static const char *const page_params[] = { "cursor", "limit", NULL };
static const char *const alert_params[] = { "open", "cursor", "limit", NULL };

#define GET(path, right, params, fn)                                                               \
    {                                                                                              \
        BS_GET, path, BS_RIGHT_##right, BS_TAKES_NOTHING, 0, params, bs_route_##fn                 \
    }
#define POST(path, right, takes, max, fn)                                                          \
    {                                                                                              \
        BS_POST, path, BS_RIGHT_##right, BS_TAKES_##takes, max, NULL, bs_route_##fn                \
    }

/* The first that matches wins; the busiest comes first. */
const struct bs_route bs_routes[] = {
    POST("/v1/tasks", SUBMIT, JSON, SUBMIT_MAX, submit),
    POST("/v1/tasks/batch", SUBMIT, JSON_OR_LINES, BATCH_MAX, batch),
    GET("/v1/tasks", READ, task_params, tasks),
    GET("/v1/tasks/{}", READ, NULL, task),
    GET("/v1/tasks/{}/log", READ, page_params, task_log),
    POST("/v1/tasks/{}/retry", ACT, JSON, SMALL_MAX, retry),
    POST("/v1/tasks/{}/hold", ACT, JSON, SMALL_MAX, hold),
    POST("/v1/tasks/{}/unhold", ACT, JSON, SMALL_MAX, unhold),
    POST("/v1/tasks/{}/resolve", ACT, JSON, SMALL_MAX, resolve),
    POST("/v1/tasks/{}/close", ACT, JSON, SMALL_MAX, close),
    GET("/v1/queues", READ, NULL, queues),
    GET("/v1/queues/{}", READ, NULL, queue),
    POST("/v1/queues/{}/pause", QUEUE, JSON, SMALL_MAX, pause),
    POST("/v1/queues/{}/resume", QUEUE, JSON, SMALL_MAX, resume),
    GET("/v1/alerts", READ_ALL, alert_params, alerts),
    GET("/v1/audit", READ_ALL, page_params, audit),
    GET("/v1/stats", READ, NULL, stats),
    GET("/v1/tokens", TOKENS, NULL, tokens),
    POST("/v1/tokens", TOKENS, JSON, SMALL_MAX, token_add),
    POST("/v1/tokens/{}/revoke", TOKENS, JSON, SMALL_MAX, token_revoke),
    GET("/v1/version", ANY, NULL, version),
    GET("/healthz", OPEN, NULL, health),
    GET("/readyz", OPEN, NULL, ready),
    GET("/metrics", OPEN, NULL, metrics),
};
const uint32_t bs_routes_n = BS_COUNT(bs_routes);
