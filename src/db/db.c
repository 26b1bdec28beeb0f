/* What all drivers share. */
#include "db/db.h"

bs_rc bs_db_check(const struct bs_db *db, struct bs_err *err)
{
    const struct bs_db_ops *o = db ? db->ops : NULL;

    if (!o || !o->name || !o->begin || !o->commit || !o->rollback || !o->run || !o->run_many ||
        !o->next || !o->script || !o->copy || !o->close)
        return bs_fail(err, BS_E_INVALID, "the database driver's table has a hole");
    return BS_OK;
}

const struct bs_dialect *bs_dialect_find(const char *name)
{
    for (uint32_t i = 0; i < bs_dialects_n; i++) {
        if (strcmp(bs_dialects[i].name, name) == 0)
            return &bs_dialects[i];
    }
    return NULL;
}
