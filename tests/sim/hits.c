/* Counting what a run reached, and saying what it did not. */
#include "hits.h"

#include <sys/mman.h>

#define NAME(name) #name,
static const char *const plan_names[] = { SIM_PLAN_LIST(NAME) };
static const char *const fault_names[] = { SIM_FAULT_LIST(NAME) };
static const char *const deed_names[] = { SIM_DEED_LIST(NAME) };

const char *plan_name(enum sim_plan p)
{
    return plan_names[p];
}

const char *fault_name(enum sim_fault f)
{
    return fault_names[f];
}

struct hits *hits_new(void)
{
    void *p =
        mmap(NULL, sizeof(struct hits), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : (struct hits *)p;
}

static void print_group(const char *title, const char *const *names, const _Atomic uint64_t *counts,
                        uint32_t n, FILE *out)
{
    fprintf(out, "%s\n", title);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "  %-24s %10llu%s", names[i], (unsigned long long)counts[i],
                i % 2 == 1 || i + 1 == n ? "\n" : "");
}

void hits_print(const struct hits *h, FILE *out)
{
    fprintf(out, "state x event\n");
    for (int s = 0; s < BS_STATE_COUNT; s++)
        for (int e = 0; e < BS_EVENT_COUNT; e++) {
            struct bs_step step = bs_fsm_step((enum bs_state)s, (enum bs_event)e);

            if (step.to == BS_STATE_NONE && h->moves[s][e] == 0)
                continue;
            fprintf(out, "  %-10s %-17s -> %-10s %10llu\n",
                    s == 0 ? "-" : bs_state_name((enum bs_state)s), bs_event_name((enum bs_event)e),
                    step.to == BS_STATE_NONE ? "refused" : bs_state_name(step.to),
                    (unsigned long long)h->moves[s][e]);
        }
    print_group("replies", plan_names, h->plans, PLAN_COUNT, out);
    print_group("faults", fault_names, h->faults, FAULT_COUNT, out);
    print_group("operations", deed_names, h->deeds, DEED_COUNT, out);
    fprintf(out, "tasks by their end:");
    for (int s = 1; s < BS_STATE_COUNT; s++)
        if (h->ends[s])
            fprintf(out, " %s %llu", bs_state_name((enum bs_state)s),
                    (unsigned long long)h->ends[s]);
    fprintf(out, "\n%llu seeds, %llu tasks, %llu calls, %llu changes of the store, %llu steps\n",
            (unsigned long long)h->seeds, (unsigned long long)h->tasks,
            (unsigned long long)h->calls, (unsigned long long)h->commits,
            (unsigned long long)h->steps);
}

static uint32_t name_holes(const char *what, const char *const *names,
                           const _Atomic uint64_t *counts, uint32_t n, FILE *out)
{
    uint32_t holes = 0;

    for (uint32_t i = 0; i < n; i++)
        if (counts[i] == 0) {
            fprintf(out, "never hit: %s %s\n", what, names[i]);
            holes++;
        }
    return holes;
}

uint32_t hits_holes(const struct hits *h, FILE *out)
{
    uint32_t holes = 0;

    for (int s = 0; s < BS_STATE_COUNT; s++)
        for (int e = 0; e < BS_EVENT_COUNT; e++)
            if (bs_fsm_step((enum bs_state)s, (enum bs_event)e).to != BS_STATE_NONE &&
                h->moves[s][e] == 0) {
                fprintf(out, "never hit: %s x %s\n", s == 0 ? "-" : bs_state_name((enum bs_state)s),
                        bs_event_name((enum bs_event)e));
                holes++;
            }
    holes += name_holes("reply", plan_names, h->plans, PLAN_COUNT, out);
    holes += name_holes("fault", fault_names, h->faults, FAULT_COUNT, out);
    holes += name_holes("operation", deed_names, h->deeds, DEED_COUNT, out);
    return holes;
}
