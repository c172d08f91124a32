/* assumptions.h - what cuda_paper.cu assumes of GPUs, and of the shares of their rates that our
 * kernels reach.
 *
 * Frozen on 2026-11-26, before the first run on a GPU, with 48 MiB of logits at a time. Do not
 * change these figures: the first run is to be held against a prediction that was made before it.
 * The shares were thought out for Hopper. An A100 and an RTX 4090 have slower tensor cores, so
 * attention should reach a larger share there. */
#ifndef CUDA_ON_CPU_ASSUMPTIONS_H
#define CUDA_ON_CPU_ASSUMPTIONS_H

static const char FROZEN[] = "2026-11-26";

/* Public data sheets: bytes of memory, bytes/s, FLOP/s in bfloat16 (dense, float32 sums) and in
 * float32, boost clock, SMs. For the RTX 4090 it is NVIDIA's paper on the Ada architecture. And the
 * CUDA Programming Guide's table of each compute capability. */
struct gpu {
    const char *name, *title;
    double memory, bandwidth, tensor_flops, float_flops, clock;
    int sms, threads, blocks, shared; /* of an SM: threads, blocks, bytes of shared memory */
};
static const gpu gpus[] = {
    {"h200", "H200 SXM", 141e9, 4.8e12, 989e12, 67e12, 1.98e9, 132, 2048, 32, 228 << 10},
    {"h100", "H100 SXM", 80e9, 3.35e12, 989e12, 67e12, 1.98e9, 132, 2048, 32, 228 << 10},
    {"a100", "A100 SXM 80 GB", 80e9, 2.039e12, 312e12, 19.5e12, 1.41e9, 108, 2048, 32, 164 << 10},
    {"rtx4090", "RTX 4090", 24e9, 1.008e12, 165.2e12, 82.6e12, 2.52e9, 128, 1536, 24, 100 << 10},
};
static const gpu *on = &gpus[0];
enum { REGISTERS = 65536 }; /* of an SM, in all of them */

/* Assumed shares of these rates.
 * Products: 700 TFLOP/s of an H100's 989 are sustained; with a side below 1024 (smollm2's width is
 * 576), 400 to 450. Reading a large matrix goes at 0.80 of the bandwidth. A product of rank 16
 * reads its result in the epilogue, and has few blocks: 0.70. Element by element: 3.7 TB/s of 4.8,
 * and at most half of the instructions that the SMs can issue.
 * Attention at texts of 512 and of 2048, between them by the logarithm. */
static const double PRODUCT_SHARE = 700.0 / 989, NARROW_SHARE = 0.43, STREAM_SHARE = 0.80,
                    THIN_SHARE = 0.70, ELEMENT_SHARE = 0.775, ISSUE_SHARE = 0.5,
                    FORWARD_SHARE[2] = {0.16, 0.24}, BACKWARD_SHARE[2] = {0.13, 0.165};
enum { NARROW = 1024, THIN = 64, FROZEN_LOGITS = 48 << 20 };
/* A block of cross entropy waits for its own reads: 95 us for a row of 128,256 logits, 8 bytes
 * each. The shortest kernel, the gap between two of a graph, and the host's time to queue one. */
static const double ROW_RATE = 8 * 128256 / 95e-6, LEAST_S = 2.5e-6, GAP_S = 1.2e-6,
                    LAUNCH_S = 4e-6;
/* Instructions for each number of the first output, counted in what nvcc made for sm_90a. Others
 * have too few to matter. */
static const struct {
    const char *op;
    double each;
} instructions[] = {{"glu_forward", 29}, {"glu_backward", 39 / 2.0}, {"rope", 24}};

#endif
