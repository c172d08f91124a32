/* tensorboard.c - write event files byte by byte. */
#include "loggers/tensorboard.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "files/file.h"
#include "core/try.h"

struct tune_tensorboard {
    FILE *file;
    char path[TUNE_PATH_MAX];
};

/* CRC-32C (Castagnoli, reflected), bit by bit; records have only some hundred bytes. */
static uint32_t crc32c(const unsigned char *data, size_t size)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

/* TFRecord stores masked checksums, so that bytes inside a record cannot look like a record. */
static uint32_t masked(const void *data, size_t size)
{
    uint32_t crc = crc32c(data, size);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* ---- protocol buffers ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* wire types */

/* A message that grows, with room for the largest event. */
struct message {
    unsigned char data[TUNE_METRICS_MOST * 128];
    size_t size;
};

static void put_byte(struct message *m, unsigned char byte)
{
    if (m->size < sizeof m->data)
        m->data[m->size] = byte;
    m->size++; /* too large: write_record refuses it */
}

static void put_varint(struct message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(m, (unsigned char)(value | 0x80));
    put_byte(m, (unsigned char)value);
}

static void put_little(struct message *m, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put_byte(m, (unsigned char)(value >> (8 * i)));
}

static void put_key(struct message *m, int field, int type)
{
    put_varint(m, (uint64_t)(field << 3 | type));
}

static void put_bytes(struct message *m, int field, const void *data, size_t size)
{
    put_key(m, field, BYTES);
    put_varint(m, size);
    for (size_t i = 0; i < size; i++)
        put_byte(m, ((const unsigned char *)data)[i]);
}

/* Event: double wall_time = 1, int64 step = 2. */
static void begin_event(struct message *event, double now_s, int64_t step)
{
    uint64_t bits;
    memcpy(&bits, &now_s, sizeof bits);
    event->size = 0;
    put_key(event, 1, FIXED64);
    put_little(event, bits, 8);
    put_key(event, 2, VARINT);
    put_varint(event, (uint64_t)step);
}

/* Summary.Value: string tag = 1, float simple_value = 2; one of the repeated value = 1 of a Summary. */
static void put_value(struct message *summary, const char *tag, double value)
{
    struct message one = {.size = 0};
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_bytes(&one, 1, tag, strlen(tag));
    put_key(&one, 2, FIXED32);
    put_little(&one, bits, 4);
    put_bytes(summary, 1, one.data, one.size);
}

/* ---- the file ---- */

static int fail(struct tune_tensorboard *t)
{
    tune_error_set("cannot write %s: %s", t->path, errno ? strerror(errno) : "write error");
    return -1;
}

static int write_record(struct tune_tensorboard *t, const struct message *event)
{
    struct message head = {.size = 0}, foot = {.size = 0};
    if (event->size > sizeof event->data) {
        tune_error_set("%s: an event of %zu bytes, more than the %zu there is room for", t->path, event->size, sizeof event->data);
        return -1;
    }
    put_little(&head, event->size, 8);
    put_little(&head, masked(head.data, 8), 4);
    put_little(&foot, masked(event->data, event->size), 4);
    errno = 0;
    fwrite(head.data, 1, head.size, t->file);
    fwrite(event->data, 1, event->size, t->file);
    fwrite(foot.data, 1, foot.size, t->file);
    return fflush(t->file) == 0 && !ferror(t->file) ? 0 : fail(t);
}

/* Seconds for the new file's name: TensorBoard reads files in the order of their names. */
static long long sort_behind(const char *folder, long long now, bool *others)
{
    static const char prefix[] = "events.out.tfevents.";
    DIR *dir = opendir(folder);
    *others = false;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strncmp(e->d_name, prefix, sizeof prefix - 1))
            continue;
        long long stamp = atoll(e->d_name + sizeof prefix - 1);
        *others = true;
        now = stamp >= now && stamp < 9999999999 ? stamp + 1 : now;
    }
    if (dir)
        closedir(dir);
    return now;
}

static int open_file(struct tune_tensorboard *t, const char *folder, long long stamp)
{
    char host[128] = "";
    if (gethostname(host, sizeof host - 1) < 0 || !*host)
        snprintf(host, sizeof host, "localhost");
    for (char *c = host; *c; c++)
        *c = *c == '/' ? '-' : *c;
    TRY(tune_path(t->path, "%s/events.out.tfevents.%010lld.%s.%ld.0", folder, stamp, host, (long)getpid()));
    t->file = fopen(t->path, "wbxe");
    return t->file ? 0 : fail(t);
}

/* Event: string file_version = 3, or SessionLog session_log = 7 { SessionStatus status = 1: START is 1 }. */
static int write_start(struct tune_tensorboard *t, double now_s, int64_t from_step)
{
    static const char version[] = "brain.Event:2";
    struct message event;
    begin_event(&event, now_s, 0);
    put_bytes(&event, 3, version, sizeof version - 1);
    TRY(write_record(t, &event));
    if (from_step <= 0)
        return 0;
    begin_event(&event, now_s, from_step);
    put_bytes(&event, 7, (const unsigned char[]){1 << 3 | VARINT, 1}, 2);
    return write_record(t, &event);
}

struct tune_tensorboard *tune_tensorboard_open(const char *folder, int64_t from_step, bool *others)
{
    time_t now = time(NULL);
    struct tune_tensorboard *t = calloc(1, sizeof *t);
    if (!t) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for a TensorBoard file");
        return NULL;
    }
    if (open_file(t, folder, sort_behind(folder, now, others)) == 0 && write_start(t, (double)now, from_step) == 0)
        return t;
    struct tune_error why;
    tune_error_save(&why);
    tune_tensorboard_close(t);
    tune_error_restore(&why);
    return NULL;
}

int tune_tensorboard_close(struct tune_tensorboard *t)
{
    int status = 0;
    errno = 0;
    if (t && t->file && fclose(t->file) != 0)
        status = fail(t);
    free(t);
    return status;
}

/* The tag of a metric: "eval_loss" becomes eval/loss, and training metrics become train/... Units
 * are spelled out, as is usual in TensorBoard. */
static void tag_of(char tag[64], const char *name)
{
    bool eval = !strncmp(name, "eval_", 5);
    const char *rest = eval ? name + 5 : name;
    rest = !strcmp(rest, "tokens_per_s") ? "tokens_per_second" : !strcmp(rest, "step_s") ? "step_seconds" : rest;
    snprintf(tag, 64, "%s/%s", eval ? "eval" : "train", rest);
}

/* Event: Summary summary = 5. */
int tune_tensorboard_step(struct tune_tensorboard *t, double now_s, int64_t step, const struct tune_metric *metrics, int count)
{
    struct message summary = {.size = 0}, event;
    char tag[64];
    for (int i = 0; i < count; i++) {
        if (!strcmp(metrics[i].name, "step"))
            continue;
        tag_of(tag, metrics[i].name);
        put_value(&summary, tag, metrics[i].value);
    }
    begin_event(&event, now_s, step);
    if (summary.size <= sizeof summary.data)
        put_bytes(&event, 5, summary.data, summary.size);
    else
        event.size = summary.size;
    return write_record(t, &event);
}
