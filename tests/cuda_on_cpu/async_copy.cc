/* async_copy.cc - cp.async: the copy happens at the wait. Until then its target is NaN. */
#include "async_copy.h"
#include "parts.h"

#include <cstring>
#include <vector>

namespace emu
{

struct copy {
    void *to;
    const void *from;
    unsigned bytes, read;
    int group;
};

/* By lane: what is under way, and the number of groups that were closed. */
static std::vector<copy> under_way[MOST_LANES];
static int groups[MOST_LANES];

void copies_begin()
{
    for (int i = 0; i < MOST_LANES; i++) {
        under_way[i].clear();
        groups[i] = 0;
    }
}

void copy_async(void *to, const void *from, unsigned bytes, unsigned read)
{
    if ((bytes != 4 && bytes != 8 && bytes != 16) || read > bytes)
        fail("cp.async of %u bytes, %u of them read: it copies 4, 8 or 16", bytes, read);
    if ((uintptr_t)to % bytes || (uintptr_t)from % bytes)
        fail("cp.async of %u bytes from %p to %p: not aligned", bytes, from, to);
    if (!is_shared(to, bytes))
        fail("cp.async to %p: no shared memory", to);
    if (read && !memory_holds(from, read))
        fail("cp.async from %p: %s", from, memory_name(from));
    memset(to, 0xff, bytes);
    under_way[lane_number()].push_back({to, from, bytes, read, groups[lane_number()]});
}

void copy_commit() { groups[lane_number()]++; }

void copy_wait(int newest)
{
    std::vector<copy> &mine = under_way[lane_number()], later;
    for (const copy &c : mine)
        if (c.group < groups[lane_number()] - newest) {
            memcpy(c.to, c.from, c.read);
            memset((char *)c.to + c.read, 0, c.bytes - c.read);
        } else {
            later.push_back(c);
        }
    mine = later;
}

} // namespace emu
