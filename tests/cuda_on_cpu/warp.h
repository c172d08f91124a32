/* warp.h - what the lanes of a warp do together. cuda_runtime.h gives it CUDA's names. Each
 * function waits for exactly the lanes of mask; a mask that does not fit aborts (block.cc, meet).
 */
#ifndef CUDA_ON_CPU_WARP_H
#define CUDA_ON_CPU_WARP_H

#include <cstddef>
#include <cstdint>

namespace emu
{

enum { SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR };
enum {
    REDUCE_ADD,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_MIN_SIGNED,
    REDUCE_MAX_SIGNED,
    REDUCE_AND,
    REDUCE_OR,
    REDUCE_XOR
};

/* shuffle - bytes <= 16 of another lane's value. by: lane, distance or bits, as kind says.
 * ballot - one bit for each lane that votes.
 * match - the lanes with the same value.
 * reduce - all values in one. */
void shuffle(int kind, unsigned mask, const void *value, void *result, size_t bytes, int by,
             int width, const char *file, int line);
unsigned ballot(const char *what, unsigned mask, bool vote, const char *file, int line);
unsigned match(const char *what, unsigned mask, uint64_t value, const char *file, int line);
uint32_t reduce(int kind, const char *what, unsigned mask, uint32_t value, const char *file,
                int line);
void sync_warp(unsigned mask, const char *file, int line);

} // namespace emu
#endif
