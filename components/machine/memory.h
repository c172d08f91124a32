/* memory.h - how much memory this process holds, and how much more it may take (Linux: /proc, control groups, ulimit).
 *
 * Resident memory is of two kinds. Anonymous pages are this process's own (tensors, heap, stacks): nothing can take them
 * back without swapping. Pages of mapped files (weights being read, rows of text, the program itself) the kernel drops
 * when memory is short and reads again: they count as resident, but they are nobody's need. */
#ifndef TUNE_CORE_MEMORY_H
#define TUNE_CORE_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_memory_anonymous - anonymous memory held now, bytes (RssAnon); 0: unknown. The kernel keeps no peak of it: whoever
 * wants one looks often.
 * tune_memory_peak - highest resident memory of any kind so far, bytes (VmHWM; not ru_maxrss, which remembers the parent
 * before exec); 0: unknown.
 * tune_memory_machine - bytes of the machine, or of the control group where that is less; 0: unknown.
 * tune_memory_used - percent of the machine's memory that is not available, as psutil counts it; -1: unknown. */
int64_t tune_memory_anonymous(void);
int64_t tune_memory_peak(void);
int64_t tune_memory_machine(void);
double tune_memory_used(void);

/* What of a process a limit counts: pages that hold something; all it may write to, which threads' stacks are whole from
 * their start; every address, mapped files and what is only reserved among them. */
enum tune_memory_counts { TUNE_MEMORY_FILLED, TUNE_MEMORY_WRITABLE, TUNE_MEMORY_ADDRESSES };

/* What bounds the memory this process may still take. */
struct tune_memory_limit {
    char what[320]; /* "available on this machine (MemAvailable)", "free in the control group /sys/fs/cgroup/..." */
    int64_t bytes;  /* what is left */
    enum tune_memory_counts counts;
};

/* tune_memory_limits - every bound there is (swap is not counted as memory), into limits; their number. */
enum { TUNE_MEMORY_LIMITS = 5 };
int tune_memory_limits(struct tune_memory_limit limits[TUNE_MEMORY_LIMITS]);

/* tune_memory_thread - bytes that a thread adds, by being started, to what such a limit counts: its stack. */
int64_t tune_memory_thread(enum tune_memory_counts counts);

#ifdef __cplusplus
}
#endif
#endif
