/* When a queue could not run: what max_age leaves out. */
#include "store/inner.h"

bs_rc stopped_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    stops_forget(s);
    return RUN(s, BS_SQL_STOP_NOTE, NULL, err, bs_text(op->stopped.biz_type),
               bs_i64(op->stopped.from.us), bs_i64(op->stopped.to.us));
}
