/* memory.h - the memory this process holds, and how much more it may allocate (Linux).
 *
 * Resident memory has two kinds. Anonymous pages (tensors, heap, stacks) belong to this process and
 * can only be swapped out. Pages of mapped files (weights being read, rows, the program) can be
 * dropped by the kernel and read again. They count as resident but are not needed. */
#ifndef TUNE_CORE_MEMORY_H
#define TUNE_CORE_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_memory_anonymous - anonymous memory held now, in bytes (RssAnon); 0: unknown. The kernel
 * stores no peak of it.
 * tune_memory_peak - peak resident memory of both kinds, in bytes (VmHWM); 0: unknown. ru_maxrss
 * would include the parent before exec.
 * tune_memory_machine - memory of the machine, or of the control group if less, in bytes; 0:
 * unknown.
 * tune_memory_used - percent of the machine's memory that is not available, like psutil; -1:
 * unknown. */
int64_t tune_memory_anonymous(void);
int64_t tune_memory_peak(void);
int64_t tune_memory_machine(void);
double tune_memory_used(void);

/* The memory that a limit counts. FILLED: pages with contents. WRITABLE: all writable memory; a
 * thread's stack counts in full from its start. ADDRESSES: all addresses, with mapped files and
 * reserved ones. */
enum tune_memory_counts { TUNE_MEMORY_FILLED, TUNE_MEMORY_WRITABLE, TUNE_MEMORY_ADDRESSES };

/* A limit on the memory this process may still allocate. */
struct tune_memory_limit {
    char what[320]; /* "available on this machine ...", "free in the control group ..." */
    int64_t bytes;  /* bytes left */
    enum tune_memory_counts counts;
};

/* tune_memory_limits - get all limits. Swap does not count as memory. Returns their number. */
enum { TUNE_MEMORY_LIMITS = 5 };
int tune_memory_limits(struct tune_memory_limit limits[TUNE_MEMORY_LIMITS]);

/* tune_memory_thread - bytes that starting a thread adds to such a limit: its stack. */
int64_t tune_memory_thread(enum tune_memory_counts counts);

#ifdef __cplusplus
}
#endif
#endif
