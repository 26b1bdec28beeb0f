/* The text forms of states, events and sources. */
#include "core/task.h"

#define NAME_OF_STATE(name) [BS_##name] = #name,
static const char *const state_names[BS_STATE_COUNT] = { [BS_STATE_NONE] = "NONE",
                                                         BS_STATE_LIST(NAME_OF_STATE) };

#define NAME_OF_EVENT(name, text) [BS_EV_##name] = (text),
static const char *const event_names[BS_EVENT_COUNT] = { BS_EVENT_LIST(NAME_OF_EVENT) };

#define NAME_OF_SOURCE(name) [BS_SRC_##name] = #name,
static const char *const source_names[BS_SOURCE_COUNT] = { [BS_SRC_NONE] = "NONE",
                                                           BS_SOURCE_LIST(NAME_OF_SOURCE) };

/* Index of the name in names[first … n-1], or n. */
static uint32_t find_name(const char *const *names, uint32_t first, uint32_t n, struct bs_str s)
{
    for (uint32_t i = first; i < n; i++) {
        if (bs_str_is(s, names[i]))
            return i;
    }
    return n;
}

const char *bs_state_name(enum bs_state s)
{
    BS_ASSERT((uint32_t)s < BS_STATE_COUNT);
    return state_names[s];
}

enum bs_state bs_state_parse(struct bs_str s)
{
    uint32_t i = find_name(state_names, BS_STATE_NONE + 1, BS_STATE_COUNT, s);

    return i < BS_STATE_COUNT ? (enum bs_state)i : BS_STATE_NONE;
}

const char *bs_event_name(enum bs_event e)
{
    BS_ASSERT((uint32_t)e < BS_EVENT_COUNT);
    return event_names[e];
}

enum bs_event bs_event_parse(struct bs_str s)
{
    return (enum bs_event)find_name(event_names, 0, BS_EVENT_COUNT, s);
}

const char *bs_source_name(enum bs_source s)
{
    BS_ASSERT((uint32_t)s < BS_SOURCE_COUNT);
    return source_names[s];
}

enum bs_source bs_source_parse(struct bs_str s)
{
    uint32_t i = find_name(source_names, BS_SRC_NONE + 1, BS_SOURCE_COUNT, s);

    return i < BS_SOURCE_COUNT ? (enum bs_source)i : BS_SRC_NONE;
}
