/* Texts of the configuration: ${NAME} becomes what the environment holds. */
#include "app/config_read.h"

#include <stdlib.h>

static bool name_char(char c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

/* The text begins with "${". Adds the variable's value; returns how many bytes it took, 0: fault.
 */
static size_t expand_one(struct bs_buf *out, struct bs_str s, struct bs_str what, uint32_t line,
                         struct bs_conf_faults *f)
{
    char name[128];
    size_t n = 2;

    while (n < s.n && n - 2 < sizeof(name) - 1 && name_char(s.p[n], n == 2))
        n++;
    if (n == 2 || n == s.n || s.p[n] != '}') {
        bs_conf_fault_add(f, line,
                          "%.*s: `${` must be followed by the name of an environment variable and "
                          "`}`; write `$${` for the two characters themselves",
                          BS_STR_FMT(what));
        return 0;
    }
    memcpy(name, s.p + 2, n - 2);
    name[n - 2] = '\0';
    const char *value = getenv(name);
    if (!value || !*value) {
        bs_conf_fault_add(f, line, "%.*s: the environment variable %s is %s", BS_STR_FMT(what),
                          name, value ? "empty" : "not set");
        return 0;
    }
    bs_buf_addz(out, value);
    return n + 1;
}

bool bs_conf_expand(struct bs_str s, struct bs_str what, uint32_t line, struct bs_str *ret,
                    struct bs_conf_faults *f)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };

    for (size_t i = 0; i < s.n;) {
        struct bs_str rest = { s.p + i, s.n - i };
        size_t used = 1;
        if (bs_str_starts(rest, BS_STR("$${"))) {
            bs_buf_addz(&out, "${");
            used = 3;
        } else if (bs_str_starts(rest, BS_STR("${"))) {
            used = expand_one(&out, rest, what, line, f);
        } else {
            bs_buf_addc(&out, s.p[i]);
        }
        if (used == 0)
            return false;
        i += used;
    }
    if (bs_buf_done(&out, NULL) != BS_OK) {
        bs_conf_fault_add(f, line, "%.*s is longer than 64 KiB", BS_STR_FMT(what));
        return false;
    }
    *ret = bs_arena_str(f->arena, bs_buf_str(&out));
    return ret->p != NULL;
}
