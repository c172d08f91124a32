/* memory.h - memory that this process holds and may still take (Linux: /proc, control groups,
 * ulimit).
 *
 * Resident memory has two kinds. Anonymous pages are the process's own: tensors, heap, stacks. Only
 * swapping takes them back. Pages of mapped files (weights, rows, the program) are dropped by the
 * kernel when memory is short, and read again. They count as resident, but nobody needs them to
 * be. */
#ifndef TUNE_CORE_MEMORY_H
#define TUNE_CORE_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_memory_anonymous - anonymous memory held now, bytes (RssAnon); 0: unknown. The kernel keeps
 * no peak of it.
 * tune_memory_peak - highest resident memory so far, bytes (VmHWM); 0: unknown. ru_maxrss would
 * include the parent before exec.
 * tune_memory_machine - bytes of the machine, or of the control group if that is less; 0: unknown.
 * tune_memory_used - percent of the machine's memory that is not available, as psutil counts it;
 * -1: unknown. */
int64_t tune_memory_anonymous(void);
int64_t tune_memory_peak(void);
int64_t tune_memory_machine(void);
double tune_memory_used(void);

/* What a limit counts. FILLED: pages with contents. WRITABLE: all writable memory; a thread's whole
 * stack counts as soon as the thread starts. ADDRESSES: all addresses, with mapped files and
 * reservations. */
enum tune_memory_counts { TUNE_MEMORY_FILLED, TUNE_MEMORY_WRITABLE, TUNE_MEMORY_ADDRESSES };

/* A limit on the memory that this process may still take. */
struct tune_memory_limit {
    /* "available on this machine (MemAvailable)", "free in the control group ..." */
    char what[320];
    int64_t bytes;  /* bytes left */
    enum tune_memory_counts counts;
};

/* tune_memory_limits - all limits there are, into limits; returns their number. Swap does not count
 * as memory. */
enum { TUNE_MEMORY_LIMITS = 5 };
int tune_memory_limits(struct tune_memory_limit limits[TUNE_MEMORY_LIMITS]);

/* tune_memory_thread - bytes that a started thread adds to such a limit: its stack. */
int64_t tune_memory_thread(enum tune_memory_counts counts);

#ifdef __cplusplus
}
#endif
#endif
