/* Prints docs/STATES.md from the state table: gen_states > docs/STATES.md */
#include "core/fsm.h"

#include <stdio.h>

int main(void)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 1 << 20 };
    struct bs_err err = { 0 };

    bs_fsm_document(&out);
    if (bs_buf_done(&out, &err) != BS_OK) {
        fprintf(stderr, "gen_states: %s\n", err.msg);
        return 1;
    }
    return fwrite(out.p, 1, out.len, stdout) == out.len && fflush(stdout) == 0 ? 0 : 1;
}
