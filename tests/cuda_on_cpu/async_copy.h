/* async_copy.h - cp.async, for ptx.h of the device. */
#ifndef CUDA_ON_CPU_ASYNC_COPY_H
#define CUDA_ON_CPU_ASYNC_COPY_H

namespace emu
{

/* copy_async - cp.async of 4, 8 or 16 bytes from device memory to shared memory. It reads `read`
 * bytes and writes zeros for the rest.
 * copy_commit - cp.async.commit_group.
 * copy_wait - cp.async.wait_group: all groups of this lane but the `newest`. */
void copy_async(void *to, const void *from, unsigned bytes, unsigned read);
void copy_commit();
void copy_wait(int newest);

} // namespace emu
#endif
