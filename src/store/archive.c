/* Finished tasks move to history, and from there away, in slices. */
#include "store/inner.h"

bs_rc archive_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    (void)s;
    (void)op;
    return bs_fail(err, BS_E_INVALID, "not there yet");
}

bs_rc purge_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    (void)s;
    (void)op;
    return bs_fail(err, BS_E_INVALID, "not there yet");
}
