/* fibers.cc - the switch in assembly for x86-64 and aarch64, by ucontext elsewhere. */
#include "fibers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if !defined(CUDA_ON_CPU_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define CUDA_ON_CPU_UCONTEXT
#endif
#ifdef CUDA_ON_CPU_UCONTEXT
#include <ucontext.h>
#endif

namespace emu
{

struct fiber {
    char *memory; /* the guard page, then the stack */
    void (*body)();
#ifdef CUDA_ON_CPU_UCONTEXT
    ucontext_t at;
#else
    void *at; /* its stack pointer while it does not run */
#endif
};

static std::vector<fiber *> pool, all;
static fiber *current;
static size_t page()
{
    static const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

static void forever()
{
    for (;;) {
        current->body();
        fiber_leave();
    }
}

#ifdef CUDA_ON_CPU_UCONTEXT

static ucontext_t scheduler;

static void prepare(fiber *f)
{
    getcontext(&f->at);
    f->at.uc_stack.ss_sp = f->memory + page();
    f->at.uc_stack.ss_size = STACK_BYTES;
    f->at.uc_link = nullptr;
    makecontext(&f->at, forever, 0);
}

void fiber_enter(fiber *f)
{
    current = f;
    swapcontext(&scheduler, &f->at);
}

void fiber_leave() { swapcontext(&current->at, &scheduler); }

#else

static void *scheduler;

/* Saves what a callee must keep, leaves the stack pointer in *save, and goes on at `to`. */
extern "C" void cuda_on_cpu_switch(void **save, void *to);

#ifdef __x86_64__
enum {
    SAVED = 7,
    ENTRY = 7
}; /* words: control words, r15..r12, rbx, rbp; then the address to return to */
asm(R"(
    .text
    .globl cuda_on_cpu_switch
    .type cuda_on_cpu_switch, @function
cuda_on_cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");

static void set_control(uint64_t *words)
{
    uint32_t mxcsr;
    uint16_t x87;
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
    words[0] = mxcsr | (uint64_t)x87 << 32;
}
#else
enum { SAVED = 20, ENTRY = 11 }; /* words: x19..x30, d8..d15; x30 is the address to return to */
asm(R"(
    .text
    .globl cuda_on_cpu_switch
    .type cuda_on_cpu_switch, %function
cuda_on_cpu_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");

static void set_control(uint64_t *) {}
#endif

static void prepare(fiber *f)
{
    /* Above the saved words lie the address of the entry, where it is not among them, and room that
     * keeps the stack aligned at the entry. Fresh memory is zero. */
    uint64_t *words = (uint64_t *)(f->memory + page() + STACK_BYTES) - (SAVED + 2);
    set_control(words);
    words[ENTRY] = (uint64_t)(uintptr_t)forever;
    f->at = words;
}

void fiber_enter(fiber *f)
{
    current = f;
    cuda_on_cpu_switch(&scheduler, f->at);
}

void fiber_leave() { cuda_on_cpu_switch(&current->at, scheduler); }

#endif

fiber *fiber_take(void (*body)())
{
    if (pool.empty()) {
        fiber *f = new fiber();
        void *memory = mmap(nullptr, page() + STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, page(), PROT_NONE) < 0) {
            perror("cuda_on_cpu: a fiber's stack");
            abort();
        }
        f->memory = (char *)memory;
        prepare(f);
        all.push_back(f);
        pool.push_back(f);
    }
    fiber *f = pool.back();
    pool.pop_back();
    f->body = body;
    return f;
}

void fiber_give(fiber *f) { pool.push_back(f); }

bool fiber_owns_guard(const void *address)
{
    for (fiber *f : all)
        if ((const char *)address >= f->memory && (const char *)address < f->memory + page())
            return true;
    return false;
}

size_t fiber_count() { return all.size(); }

} // namespace emu
