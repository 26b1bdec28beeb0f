/* Finding one queue in the sorted snapshot. */
#include "core/queue.h"

const struct bs_queue_conf *bs_queue_find(const struct bs_queues *q, struct bs_str biz_type)
{
    uint32_t from = 0;
    uint32_t to = q ? q->n : 0;

    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        int order = bs_str_cmp(q->items[mid].biz_type, biz_type);

        if (order == 0)
            return &q->items[mid];
        if (order < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

const struct bs_host_conf *bs_host_find(const struct bs_queues *q, struct bs_str name)
{
    for (uint32_t i = 0; q && i < q->hosts_n; i++) {
        if (bs_str_eq(q->hosts[i].name, name))
            return &q->hosts[i];
    }
    return NULL;
}
