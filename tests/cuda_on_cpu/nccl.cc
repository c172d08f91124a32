/* nccl.cc - NCCL between processes with emulated GPUs: see nccl.h. */
#include "nccl.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parts.h"

namespace fs = std::filesystem;
using namespace emu;

/* A call. Its data go to the file behind it, if this rank gives any. */
struct call {
    enum kind { REDUCE_SCATTER, REDUCE, ALL_GATHER, BROADCAST, SEND, RECEIVE } kind;
    const void *from;
    void *to;
    size_t bytes; /* that one rank gives; REDUCE_SCATTER: all */
    int peer;     /* root, or the other one */
};

struct emu_nccl {
    std::string folder;
    int rank = 0, size = 1;
    bool blocking = true, met = false, aborted = false;
    long number = 0;         /* of groups so far */
    std::vector<call> taken; /* not in the stream yet */
    cudaStream_t stream = nullptr;
    bool ends = false;
};

/* Some calls of one thread until ncclGroupEnd. */
static thread_local int depth;
static thread_local std::vector<call> grouped;
static thread_local emu_nccl *group_comm;
static thread_local cudaStream_t group_stream;

static std::string file(const emu_nccl *c, const std::string &name, int rank)
{
    return c->folder + "/" + name + "." + std::to_string(rank);
}

/* A file is there at once, whole. */
static void put(const emu_nccl *c, const std::string &name, const std::string &bytes)
{
    std::string path = file(c, name, c->rank), part = path + ".part";
    std::ofstream out(part, std::ios::binary);
    out.write(bytes.data(), (std::streamsize)bytes.size());
    out.close();
    std::error_code error;
    fs::rename(part, path, error);
    if (!out || error)
        fail("NCCL: cannot write %s", path.c_str());
}

static bool all_there(const emu_nccl *c, const std::string &name)
{
    for (int r = 0; r < c->size; r++)
        if (!fs::exists(file(c, name, r)))
            return false;
    return true;
}

static std::string get(const emu_nccl *c, const std::string &name, int rank)
{
    std::ifstream in(file(c, name, rank), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

static bool gives(const emu_nccl *c, const call &k)
{
    return k.kind == call::RECEIVE || (k.kind == call::BROADCAST && k.peer != c->rank) ? false
                                                                                       : true;
}

static std::string told(const emu_nccl *c, const std::vector<call> &calls)
{
    std::string text;
    open_memory open;
    for (const call &k : calls) {
        text.append((const char *)&k, sizeof k);
        if (gives(c, k))
            text.append((const char *)k.from, k.bytes);
    }
    return text;
}

/* What a rank told: its calls, and where their data lie. */
struct heard {
    std::string text;
    std::vector<std::pair<call, const char *>> calls;
};

static heard hear(const emu_nccl *c, const std::string &name, int rank)
{
    heard h;
    emu_nccl other = *c;
    other.rank = rank;
    h.text = get(c, name, rank);
    for (size_t at = 0; at < h.text.size();) {
        call k;
        memcpy(&k, h.text.data() + at, sizeof k);
        at += sizeof k;
        h.calls.push_back({k, h.text.data() + at});
        at += gives(&other, k) ? k.bytes : 0;
    }
    return h;
}

/* The data of the same call by another rank; of a receive: of its send. */
static const char *of(const std::vector<heard> &all, const emu_nccl *c, size_t index, const call &k,
                      int rank)
{
    if (k.kind != call::RECEIVE) {
        if (index >= all[(size_t)rank].calls.size())
            fail("NCCL: rank %d calls less than rank %d", rank, c->rank);
        const auto &other = all[(size_t)rank].calls[index];
        if (other.first.kind != k.kind || other.first.bytes != k.bytes ||
            other.first.peer != k.peer)
            fail("NCCL: ranks %d and %d call different things", rank, c->rank);
        return other.second;
    }
    for (const auto &other : all[(size_t)rank].calls)
        if (other.first.kind == call::SEND && other.first.peer == c->rank) {
            if (other.first.bytes != k.bytes)
                fail("NCCL: rank %d sends %zu bytes, rank %d expects %zu", rank, other.first.bytes,
                     c->rank, k.bytes);
            return other.second;
        }
    fail("NCCL: rank %d expects something that rank %d does not send", c->rank, rank);
}

/* sum of the ranks' floats at that offset, in the order of a ring that ends at `owner`. */
static void add(const std::vector<heard> &all, const emu_nccl *c, size_t index, const call &k,
                size_t offset, size_t bytes, int owner)
{
    std::vector<float> sum(bytes / 4), next(bytes / 4);
    for (int i = 1; i <= c->size; i++) {
        int r = (owner + i) % c->size;
        memcpy(i == 1 ? sum.data() : next.data(), of(all, c, index, k, r) + offset, bytes);
        for (size_t n = 0; i > 1 && n < sum.size(); n++)
            sum[n] += next[n];
    }
    memcpy(k.to, sum.data(), bytes);
}

static void run(emu_nccl *c, const std::string &name, const std::vector<call> &calls)
{
    std::vector<heard> all;
    for (int r = 0; r < c->size; r++)
        all.push_back(hear(c, name, r));
    open_memory open;
    for (size_t i = 0; i < calls.size(); i++) {
        const call &k = calls[i];
        size_t share = k.bytes / (size_t)c->size;
        switch (k.kind) {
        case call::REDUCE_SCATTER:
            add(all, c, i, k, share * (size_t)c->rank, share, c->rank);
            break;
        case call::REDUCE:
            of(all, c, i, k, (c->rank + 1) % c->size);
            if (k.peer == c->rank)
                add(all, c, i, k, 0, k.bytes, k.peer);
            break;
        case call::ALL_GATHER:
            for (int r = 0; r < c->size; r++)
                memcpy((char *)k.to + (size_t)r * k.bytes, of(all, c, i, k, r), k.bytes);
            break;
        case call::BROADCAST: memcpy(k.to, of(all, c, i, k, k.peer), k.bytes); break;
        case call::RECEIVE: memcpy(k.to, of(all, c, i, k, k.peer), k.bytes); break;
        case call::SEND: break;
        }
    }
}

/* CUDA_ON_CPU_NCCL_SIGNAL=RANK:NUMBER:SIGNAL - that rank gets the signal when the others wait for
 * it in their NUMBER-th group. */
static void signal_here(const emu_nccl *c, long number)
{
    const char *text = getenv("CUDA_ON_CPU_NCCL_SIGNAL");
    int rank, which, at;
    if (text && sscanf(text, "%d:%d:%d", &rank, &at, &which) == 3 && rank == c->rank &&
        at == number)
        raise(which);
}

/* Put the calls into the stream as one item. All have read the files of the item before. */
static ncclResult_t issue(emu_nccl *c)
{
    if (c->taken.empty())
        return ncclSuccess;
    std::string name = "call" + std::to_string(++c->number),
                before = file(c, "call" + std::to_string(c->number - 1), c->rank);
    auto calls = std::make_shared<std::vector<call>>(std::move(c->taken));
    auto said = std::make_shared<bool>(false);
    c->taken.clear();
    long number = c->number;
    auto ready = [=] {
        if (c->aborted)
            return true;
        if (!*said)
            signal_here(c, number);
        if (!*said)
            put(c, name, told(c, *calls));
        *said = true;
        return all_there(c, name);
    };
    auto todo = [=] {
        if (c->aborted)
            return;
        run(c, name, *calls);
        std::error_code none;
        fs::remove(before, none);
    };
    return queue(c->stream, "ncclGroupEnd", todo, ready) == cudaSuccess ? ncclSuccess
                                                                        : ncclInvalidArgument;
}

static ncclResult_t take(const call &k, ncclComm_t comm, cudaStream_t stream)
{
    my_turn turn;
    if (called("nccl") != cudaSuccess)
        return ncclSystemError;
    if ((k.from && !memory_holds(k.from, gives(comm, k) ? k.bytes : 0)) ||
        (k.to && !memory_holds(k.to, 1)))
        return ncclInvalidArgument;
    if (!comm->met || comm->aborted || comm->ends || !comm->taken.empty() ||
        (group_comm && group_comm != comm))
        return ncclInvalidUsage; /* one before has not been taken yet */
    bool alone = depth == 0;
    if (alone)
        ncclGroupStart();
    grouped.push_back(k);
    group_comm = comm;
    group_stream = stream;
    return alone ? ncclGroupEnd() : ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    my_turn turn;
    emu_nccl *c = group_comm;
    if (depth == 0)
        return ncclInvalidUsage;
    if (--depth > 0 || !c)
        return ncclSuccess;
    c->taken = std::move(grouped);
    c->stream = group_stream;
    grouped.clear();
    group_comm = nullptr;
    return c->blocking ? issue(c) : ncclInProgress;
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t share, ncclDataType_t,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t stream)
{
    return take({call::REDUCE_SCATTER, from, to, share * (size_t)comm->size * 4, 0}, comm, stream);
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t, ncclRedOp_t,
                        int root, ncclComm_t comm, cudaStream_t stream)
{
    return take({call::REDUCE, from, to, count * 4, root}, comm, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t share, ncclDataType_t,
                           ncclComm_t comm, cudaStream_t stream)
{
    return take({call::ALL_GATHER, from, to, share, 0}, comm, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return take({call::BROADCAST, from, to, count, root}, comm, stream);
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return take({call::SEND, from, nullptr, count, peer}, comm, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return take({call::RECEIVE, nullptr, to, count, peer}, comm, stream);
}

/* ---- comms ---- */

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess      ? "no error"
           : result == ncclInProgress ? "NCCL operation in progress"
                                      : "an error of the emulated NCCL";
}

const char *ncclGetLastError(ncclComm_t)
{
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    std::string folder = fs::temp_directory_path() / "nccl-on-cpu-XXXXXX";
    if (folder.size() >= sizeof id->internal || !mkdtemp(folder.data()))
        return ncclSystemError;
    snprintf(id->internal, sizeof id->internal, "%s", folder.c_str());
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    emu_nccl *c = new emu_nccl();
    c->folder = id.internal;
    c->rank = rank;
    c->size = size;
    c->blocking = config->blocking;
    if (c->blocking)
        fail("NCCL: the emulator has only comms that do not block");
    *comm = c;
    put(c, "here", std::to_string(current_device()));
    return ncclInProgress;
}

/* Each question takes one thing that was asked for. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *error)
{
    my_turn turn;
    *error = ncclSuccess;
    if (!c->met) {
        c->met = all_there(c, "here");
        *error = c->met ? ncclSuccess : ncclInProgress;
        for (int r = 0; c->met && r < c->rank; r++)
            if (get(c, "here", r) == get(c, "here", c->rank))
                *error = ncclInvalidUsage; /* two ranks with one GPU */
    } else if (c->ends && c->rank == 0) {
        *error = all_there(c, "end") ? ncclSuccess : ncclInProgress;
    } else if (!c->taken.empty()) {
        *error = issue(c);
    }
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    c->ends = true;
    put(c, "end", "");
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    if (!c->ends)
        return ncclInvalidUsage;
    std::error_code none;
    if (c->rank == 0)
        fs::remove_all(c->folder, none);
    return ncclSuccess; /* what waits in a stream may still know it */
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    my_turn turn;
    c->aborted = true;
    return ncclSuccess;
}
