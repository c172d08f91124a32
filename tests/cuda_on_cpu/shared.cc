/* shared.cc - a block's shared memory: NaN at first, red zones around each array, each
 * architecture's limits. */
#include "parts.h"

#include <cstdlib>
#include <cstring>
#include <vector>

namespace emu
{

struct shared_array {
    const void *key;
    const char *name;
    size_t begin, bytes;
};

/* Static arrays lie in the first half, the dynamic part in the second. */
enum { HALF = 512 * 1024, RED = 64 };
alignas(1024) static unsigned char arena[2 * HALF];
static std::vector<shared_array> arrays;
static size_t top, static_bytes, dynamic_bytes, allowed_bytes;
static int sm;

int architecture()
{
    const char *wanted = getenv("CUDA_ON_CPU_ARCH");
    if (!sm)
        sm = wanted ? atoi(wanted) : 90;
    return sm;
}

void set_architecture(int wanted) { sm = wanted; }

size_t shared_limit()
{
    switch (architecture()) {
    case 75: return 64 * 1024;
    case 80: return 163 * 1024;
    case 86:
    case 89:
    case 120: return 99 * 1024;
    case 90:
    case 100: return 227 * 1024;
    default: fail("architecture %d is not known: 75, 80, 86, 89, 90, 100, 120", sm);
    }
}

static void check_size()
{
    size_t most = allowed_bytes ? shared_limit() : (size_t)STATIC_SHARED;
    if (static_bytes > STATIC_SHARED)
        fail("%zu bytes of static shared memory; the limit is %d", static_bytes, STATIC_SHARED);
    if (static_bytes + dynamic_bytes > most)
        fail("%zu bytes of shared memory, %zu of them static; the limit is %zu on sm_%d%s",
             static_bytes + dynamic_bytes, static_bytes, most, architecture(),
             allowed_bytes ? "" : " without cudaFuncSetAttribute");
}

void shared_begin(size_t dynamic, size_t allowed)
{
    static bool filled;
    if (!filled)
        memset(arena, 0xff, sizeof arena);
    filled = true;
    dynamic_bytes = dynamic;
    allowed_bytes = allowed;
    top = static_bytes = 0;
    arrays.clear();
    check_size();
    if (dynamic)
        arrays.push_back({nullptr, "the dynamic part", HALF, dynamic});
}

void *static_shared(const void *key, const char *name, size_t bytes, size_t alignment)
{
    for (const shared_array &a : arrays)
        if (a.key == key)
            return arena + a.begin;
    alignment = alignment < 16 ? 16 : alignment;
    size_t begin = (top + RED + alignment - 1) / alignment * alignment;
    top = begin + bytes + RED;
    static_bytes += bytes;
    check_size();
    arrays.push_back({key, name, begin, bytes});
    return arena + begin;
}

void *dynamic_shared() { return arena + HALF; }

bool is_shared(const void *at, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)at;
    for (const shared_array &a : arrays)
        if (p >= arena + a.begin && p + bytes <= arena + a.begin + a.bytes)
            return true;
    return false;
}

static void check_zone(const shared_array &a, size_t begin, size_t from)
{
    for (size_t i = begin; i < begin + RED; i++)
        if (arena[i] != 0xff)
            fail("a lane wrote beside the shared array %s of %zu bytes, at its byte %td", a.name,
                 a.bytes, (ptrdiff_t)i - (ptrdiff_t)from);
}

void shared_end()
{
    for (const shared_array &a : arrays) {
        check_zone(a, a.begin - RED, a.begin);
        check_zone(a, a.begin + a.bytes, a.begin);
        memset(arena + a.begin - RED, 0xff, a.bytes + 2 * RED);
    }
    arrays.clear();
}

} // namespace emu
