/* streams.cc - streams, events, graphs, and the check of a launch. Work waits in its stream until
 * somebody needs it. So it runs as late as it may. */
#include "parts.h"
#include "runtime_api.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <vector>

typedef std::function<void()> work;

struct emu_graph {
    std::vector<work> nodes;
};
struct emu_graph_exec {
    std::vector<work> nodes;
    int64_t bytes; /* of device memory */
};
/* ready: whether it can run now; empty: it always can. */
struct item {
    work todo;
    std::function<bool()> ready;
};
struct emu_stream {
    std::deque<item> waiting;
    int device = 0;
    uint64_t queued = 0, done = 0;
    bool blocking = true; /* ordered with the null stream */
    bool destroyed = false;
    emu_graph *capture = nullptr;
    bool broken = false; /* the capture holds a call that it may not */
};
struct emu_event {
    emu_stream *stream = nullptr; /* null: not recorded yet */
    uint64_t number = 0;          /* done when the stream has done as many */
    emu_graph *capture = nullptr; /* recorded into that one */
    double time = 0;
    bool timed = true, destroyed = false;
};

static emu_stream null_stream;
static std::vector<emu_stream *> streams = {
    &null_stream}; /* destroyed ones too: their names are not used again */
static std::map<const void *, size_t> allowed_shared;
static double pretended_ms;
static std::function<void(const void *, const emu::grid &)> count;

unsigned long long emu::clock_ns()
{
    return (unsigned long long)std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

using namespace emu;

static emu_stream *stream_of(cudaStream_t stream) { return stream ? stream : &null_stream; }

static bool is_stream(cudaStream_t stream)
{
    for (emu_stream *s : streams)
        if (s == stream_of(stream))
            return !s->destroyed;
    return false;
}

/* Run what waits in s, up to its item `number`. A lost GPU drops it. patient: wait for an item that
 * is not ready. */
static void run_until(emu_stream *s, uint64_t number, bool patient = true)
{
    if (s->done >= number)
        return;
    open_memory open; /* once for all items */
    while (s->done < number && !s->waiting.empty()) {
        if (!is_lost() && s->waiting.front().ready && !s->waiting.front().ready()) {
            if (!patient)
                return;
            let_others others;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            continue;
        }
        item next = std::move(s->waiting.front());
        s->waiting.pop_front();
        if (!is_lost())
            next.todo();
        s->done++;
    }
}

namespace emu
{

void pretend(double ms) { pretended_ms += ms; }

void count_only(const std::function<void(const void *kernel, const grid &g)> &seen)
{
    finish_all();
    count = seen;
}

bool counting() { return count != nullptr; }

bool is_capturing()
{
    for (emu_stream *s : streams)
        if (s->capture)
            return true;
    return false;
}

/* The null stream comes last: what does not wait for it must not need it. */
void finish_all()
{
    for (size_t i = streams.size(); i-- > 0;)
        run_until(streams[i], streams[i]->queued);
}

/* What the null stream and blocking streams wait for: each other's earlier items. */
static work ordered(emu_stream *s, work todo)
{
    std::vector<std::pair<emu_stream *, uint64_t>> before;
    for (emu_stream *other : streams)
        if (other != s && other->blocking && (s == &null_stream || other == &null_stream) &&
            s->blocking && other->done < other->queued)
            before.push_back({other, other->queued});
    if (before.empty())
        return todo;
    return [before, todo] {
        for (auto &b : before)
            run_until(b.first, b.second);
        todo();
    };
}

static uint64_t queued_so_far;

uint64_t queued() { return queued_so_far; }

cudaError_t queue(cudaStream_t stream, const char *what, work todo, std::function<bool()> ready)
{
    if (in_kernel())
        fail("a kernel calls %s", what);
    if (!is_stream(stream))
        return returned(cudaErrorInvalidResourceHandle);
    emu_stream *s = stream_of(stream);
    if (stream && s->device != current_device())
        return returned(cudaErrorInvalidResourceHandle);
    if (counting())
        return cudaSuccess;
    if (s->capture) {
        s->capture->nodes.push_back(todo);
        return cudaSuccess;
    }
    s->waiting.push_back({ordered(s, todo), ready});
    s->queued++;
    queued_so_far++;
    return cudaSuccess;
}

cudaError_t queue_grid(const void *kernel, grid g, cudaStream_t stream)
{
    EMU_CALLED(("launch " + g.kernel).c_str());
    uint64_t threads = (uint64_t)g.threads.x * g.threads.y * g.threads.z;
    if (threads == 0 || threads > MOST_LANES || g.threads.z > 64 || g.blocks.x == 0 ||
        g.blocks.y == 0 || g.blocks.z == 0 || g.blocks.x > 0x7fffffff || g.blocks.y > 65535 ||
        g.blocks.z > 65535)
        return returned(cudaErrorInvalidConfiguration);
    auto allowed = allowed_shared.find(kernel);
    g.shared_allowed = allowed == allowed_shared.end() ? 0 : allowed->second;
    if (g.shared > (g.shared_allowed > STATIC_SHARED ? g.shared_allowed : (size_t)STATIC_SHARED))
        return returned(cudaErrorInvalidValue);
    if (!memory_load(kernel))
        return returned(cudaErrorMemoryAllocation);
    if (count)
        count(kernel, g);
    return queue(stream, g.kernel.c_str(), [g] { run_grid(g); });
}

} // namespace emu

cudaError_t emu_allow_shared(const void *kernel, size_t bytes)
{
    EMU_CALLED("cudaFuncSetAttribute");
    if (bytes > shared_limit())
        return returned(cudaErrorInvalidValue);
    allowed_shared[kernel] = bytes;
    return cudaSuccess;
}

/* ---- streams ---- */

void emu::break_capture(cudaStream_t stream) { stream_of(stream)->broken = true; }

/* A wait that a capture may not hold ends the capture. */
static bool breaks_capture(emu_stream *s)
{
    if (s && s->capture)
        s->broken = true;
    return s ? s->capture != nullptr : is_capturing();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    EMU_CALLED("cudaStreamCreateWithFlags");
    *stream = new emu_stream();
    (*stream)->device = current_device();
    (*stream)->blocking = !(flags & cudaStreamNonBlocking);
    streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *most)
{
    EMU_CALLED("cudaDeviceGetStreamPriorityRange");
    *least = 0;
    *most = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    EMU_CALLED("cudaStreamDestroy");
    if (!stream || !is_stream(stream))
        return returned(cudaErrorInvalidResourceHandle);
    run_until(stream, stream->queued);
    stream->destroyed = true;
    return cudaSuccess;
}

cudaError_t emu::wait_for(cudaStream_t stream)
{
    if (!is_stream(stream))
        return returned(cudaErrorInvalidResourceHandle);
    emu_stream *s = stream_of(stream);
    if (breaks_capture(s))
        return returned(cudaErrorStreamCaptureUnsupported);
    run_until(s, s->queued);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    EMU_CALLED("cudaStreamSynchronize", true);
    return wait_for(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    EMU_CALLED("cudaStreamQuery");
    if (!is_stream(stream) || (stream && stream->device != current_device()))
        return returned(cudaErrorInvalidResourceHandle);
    emu_stream *s = stream_of(stream);
    if (breaks_capture(s))
        return returned(cudaErrorStreamCaptureUnsupported);
    run_until(s, s->done + 1, false); /* somebody who asks again and again comes to the end */
    return s->done == s->queued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize()
{
    EMU_CALLED("cudaDeviceSynchronize", true);
    if (breaks_capture(nullptr))
        return returned(cudaErrorStreamCaptureUnsupported);
    finish_all();
    return cudaSuccess;
}

/* ---- events ---- */

/* A call for an event of another GPU would open that one for this thread, which takes memory. */
static bool of_other_gpu(const emu_event *event)
{
    return event->stream && event->stream != &null_stream &&
           event->stream->device != current_device();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    EMU_CALLED("cudaEventCreateWithFlags");
    *event = new emu_event();
    (*event)->timed = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    EMU_CALLED("cudaEventDestroy");
    if (!event || event->destroyed || of_other_gpu(event))
        return returned(cudaErrorInvalidResourceHandle);
    event->destroyed = true; /* its record may still wait in a stream */
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    EMU_CALLED("cudaEventRecord");
    if (!event || event->destroyed)
        return returned(cudaErrorInvalidResourceHandle);
    cudaError_t error = queue(stream, "cudaEventRecord", [event] {
        std::chrono::duration<double, std::milli> now =
            std::chrono::steady_clock::now().time_since_epoch();
        event->time = now.count() + pretended_ms;
    });
    if (error)
        return error;
    event->stream = stream_of(stream);
    event->capture = event->stream->capture;
    event->number = event->stream->queued;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    EMU_CALLED("cudaStreamWaitEvent");
    if (!event || event->destroyed || !is_stream(stream))
        return returned(cudaErrorInvalidResourceHandle);
    emu_stream *s = stream_of(stream), *other = event->stream;
    uint64_t number = event->number;
    if (!other || (other == s && event->capture == s->capture))
        return cudaSuccess;
    if (event->capture || s->capture)
        return returned(cudaErrorStreamCaptureIsolation);
    return queue(stream, "cudaStreamWaitEvent", [other, number] { run_until(other, number); });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    EMU_CALLED("cudaEventQuery");
    if (!event || event->destroyed || of_other_gpu(event))
        return returned(cudaErrorInvalidResourceHandle);
    if (event->capture)
        return returned(cudaErrorStreamCaptureUnsupported);
    if (!event->stream || event->stream->done >= event->number)
        return cudaSuccess;
    run_until(event->stream, event->stream->done + 1, false);
    return event->stream->done >= event->number ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    EMU_CALLED("cudaEventSynchronize",
               event && event->stream && event->stream->done < event->number);
    if (!event || event->destroyed)
        return returned(cudaErrorInvalidResourceHandle);
    if (event->capture)
        return returned(cudaErrorStreamCaptureUnsupported);
    if (event->stream)
        run_until(event->stream, event->number);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    EMU_CALLED("cudaEventElapsedTime");
    if (!begin || !end || !begin->timed || !end->timed || !begin->stream || !end->stream)
        return returned(cudaErrorInvalidResourceHandle);
    if (begin->stream->done < begin->number || end->stream->done < end->number)
        return returned(cudaErrorNotReady);
    *ms = (float)(end->time - begin->time);
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    EMU_CALLED("cudaStreamBeginCapture");
    if (!stream || !is_stream(stream) || stream->capture)
        return returned(cudaErrorStreamCaptureUnsupported);
    stream->capture = new emu_graph();
    stream->broken = false;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    EMU_CALLED("cudaStreamEndCapture");
    *graph = nullptr;
    if (!stream || !is_stream(stream) || !stream->capture)
        return returned(cudaErrorInvalidValue);
    emu_graph *captured = stream->capture;
    stream->capture = nullptr;
    if (stream->broken) {
        delete captured;
        return returned(cudaErrorStreamCaptureInvalidated);
    }
    *graph = captured;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    EMU_CALLED("cudaStreamIsCapturing");
    emu_stream *s = stream_of(stream);
    *status = !s->capture ? cudaStreamCaptureStatusNone
              : s->broken ? cudaStreamCaptureStatusInvalidated
                          : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    EMU_CALLED("cudaGraphInstantiate");
    const char *wanted = getenv("CUDA_ON_CPU_GRAPH_NODE");
    int64_t bytes = (wanted ? atoll(wanted) : 8192) * (int64_t)graph->nodes.size();
    if (!memory_take(bytes))
        return returned(cudaErrorMemoryAllocation);
    *exec = new emu_graph_exec{graph->nodes, bytes};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    EMU_CALLED("cudaGraphLaunch");
    std::vector<work> nodes = exec->nodes;
    return queue(stream, "cudaGraphLaunch", [nodes] {
        for (const work &node : nodes)
            node();
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    EMU_CALLED("cudaGraphExecDestroy");
    memory_take(-exec->bytes);
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    EMU_CALLED("cudaGraphDestroy");
    delete graph;
    return cudaSuccess;
}
