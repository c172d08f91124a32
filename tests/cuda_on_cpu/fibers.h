/* fibers.h - stacks to run lanes on. One host thread switches between them.
 *
 * A fiber runs `body` when it is entered, and again each time it is entered after body returned.
 * Fibers are pooled: a fresh stack costs two system calls, a switch some nanoseconds. Each stack
 * ends at a page that nobody may touch. */
#ifndef CUDA_ON_CPU_FIBERS_H
#define CUDA_ON_CPU_FIBERS_H

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#error "AddressSanitizer does not follow these fibers: build cuda_on_cpu without it"
#endif

namespace emu
{

struct fiber;

enum { STACK_BYTES = 128 * 1024 };

/* fiber_take - an idle fiber, new if the pool is empty. body is the same for all.
 * fiber_give - back into the pool; its body has returned.
 * fiber_enter - run it until it leaves or its body returns. Called by the scheduler.
 * fiber_leave - back to the scheduler. Called on the fiber.
 * fiber_owns_guard - whether the address lies in a stack's guard page. */
fiber *fiber_take(void (*body)());
void fiber_give(fiber *f);
void fiber_enter(fiber *f);
void fiber_leave();
bool fiber_owns_guard(const void *address);

/* fiber_count - stacks made so far. */
size_t fiber_count();

} // namespace emu
#endif
