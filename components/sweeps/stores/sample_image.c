/* sample_image.c - build sample files in memory with HDF5's core driver. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "core/version.h"
#include "sweeps/stores/hdf5_quiet.h"
#include "sweeps/stores/sample_file.h"

/* The distinct reasons in all rows, in first-seen order. Number 0 is "". */
struct reasons {
    const char **texts;
    size_t count;
};

static int64_t number_of(struct reasons *r, const char *text)
{
    size_t i = 0;
    while (i < r->count && strcmp(r->texts[i], text))
        i++;
    if (i == r->count)
        r->texts[r->count++] = text;
    return (int64_t)i;
}

static hid_t text_type(size_t bytes)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, bytes) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        tune_hdf5_close(type);
        return H5I_INVALID_HID;
    }
    return type;
}

/* The size of a text column: the longest text with a NUL, rounded up to a multiple of 8 bytes. */
static int text_size(size_t longest)
{
    return (int)(longest / 8 + 1) * 8;
}

/* Lay out texts as in the file, each in *width bytes. The caller frees them. */
static char *pack(const char *const *texts, size_t count, size_t *width)
{
    size_t longest = 0;
    for (size_t i = 0; i < count; i++)
        longest = strlen(texts[i]) > longest ? strlen(texts[i]) : longest;
    *width = (size_t)text_size(longest);
    char *data = calloc(count, *width);
    for (size_t i = 0; i < count && data; i++)
        memcpy(data + i * *width, texts[i], strlen(texts[i]));
    return data;
}

/* A property list without creation times, so that the same rows make the same bytes. */
static hid_t without_times(hid_t kind)
{
    hid_t plist = H5Pcreate(kind);
    if (plist >= 0 && H5Pset_obj_track_times(plist, 0) < 0) {
        tune_hdf5_close(plist);
        return H5I_INVALID_HID;
    }
    return plist;
}

/* ---- attributes ---- */

/* Write an attribute of count elements (0: a single value). */
static int put_attribute(hid_t object, const char *name, hid_t type, hsize_t count, const void *data)
{
    TUNE_HDF5 space = count ? H5Screate_simple(1, &count, NULL) : H5Screate(H5S_SCALAR);
    TUNE_HDF5 attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    return H5Awrite(attribute, type, data) < 0 ? -1 : 0;
}

static int put_text(hid_t object, const char *name, const char *text)
{
    TUNE_HDF5 type = text_type(strlen(text) + 1);
    return put_attribute(object, name, type, 0, text);
}

static int put_texts(hid_t object, const char *name, const char *const *texts, size_t count)
{
    size_t width;
    char *data = pack(texts, count, &width);
    TUNE_HDF5 type = text_type(width);
    int status = data ? put_attribute(object, name, type, count, data) : -1;
    free(data);
    return status;
}

/* Write the attributes of H5TB, which PyTables and HDFView expect, then the roles and units of
 * columns. */
static int put_attributes(hid_t dataset, const struct tune_sample_rows *t)
{
    static const char *const roles[] = {"key", "input", "target"};
    char name[32];
    size_t n = (size_t)t->column_count;
    const char **texts = calloc(2 * n, sizeof *texts);
    signed char *whole = calloc(n, 1);
    int status = texts && whole ? 0 : -1;
    if (status == 0)
        status = put_text(dataset, "CLASS", "TABLE") | put_text(dataset, "VERSION", "3.0") |
                 put_text(dataset, "TITLE", tune_sample_title(t->name));
    for (size_t i = 0; i < n && status == 0; i++) {
        snprintf(name, sizeof name, "FIELD_%zu_NAME", i);
        status = put_text(dataset, name, t->columns[i].name);
        texts[i] = t->columns[i].unit;
        texts[n + i] = roles[t->columns[i].role];
        whole[i] = t->columns[i].whole;
    }
    if (status == 0)
        status = put_texts(dataset, "units", texts, n) | put_texts(dataset, "roles", texts + n, n) |
                 put_attribute(dataset, "whole", H5T_STD_I8LE, n, whole);
    free(texts);
    free(whole);
    return status;
}

/* ---- tables ---- */

/* Store a hash of each piece of rows (TUNE_SAMPLE_HASHES). */
static int put_hashes(hid_t dataset, const char *data, size_t rows, size_t row_bytes, size_t piece_rows)
{
    size_t count = (rows + piece_rows - 1) / piece_rows;
    uint64_t *hashes = calloc(count + 1, sizeof *hashes);
    for (size_t i = 0; i < count && hashes; i++) {
        size_t n = rows - i * piece_rows < piece_rows ? rows - i * piece_rows : piece_rows;
        hashes[i] = tune_hash64(data + i * piece_rows * row_bytes, n * row_bytes, 0);
    }
    int status = hashes ? put_attribute(dataset, TUNE_SAMPLE_HASHES, H5T_STD_U64LE, count, hashes) : -1;
    free(hashes);
    return status;
}

/* Write a 1-d dataset with the rows in data. It has chunks, because PyTables (pandas.read_hdf)
 * needs them, and because each gets a Fletcher-32 checksum. A reader reads at least one chunk. */
static hid_t put_dataset(hid_t group, const char *name, hid_t type, hsize_t rows, const void *data)
{
    hsize_t most = TUNE_SAMPLE_PIECE_BYTES / H5Tget_size(type), chunk = rows < most ? rows : most;
    chunk = chunk > 0 ? chunk : 1;
    TUNE_HDF5 space = H5Screate_simple(1, &rows, NULL);
    TUNE_HDF5 plist = without_times(H5P_DATASET_CREATE);
    hid_t dataset = H5I_INVALID_HID;
    /* zeros after the last row, so that the same rows give the same bytes */
    if (H5Pset_attr_phase_change(plist, 65535, 0) >= 0 &&
        H5Pset_fill_time(plist, H5D_FILL_TIME_ALLOC) >= 0 && H5Pset_chunk(plist, 1, &chunk) >= 0 && H5Pset_fletcher32(plist) >= 0)
        dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    if (dataset >= 0 && rows > 0 &&
        (H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0 ||
         put_hashes(dataset, data, (size_t)rows, H5Tget_size(type), (size_t)chunk) < 0)) {
        tune_hdf5_close(dataset);
        dataset = H5I_INVALID_HID;
    }
    return dataset;
}

static bool is_reason(const struct tune_sample_rows *t, int column)
{
    return t->name && column == TUNE_KEY_REASON;
}

/* Compute widths[i], the bytes of each column in a row. Returns their sum. */
static size_t set_widths(const struct tune_sample_rows *t, int *widths)
{
    size_t sum = 0;
    for (int c = 0; c < t->column_count; c++) {
        size_t longest = 0;
        bool text = t->columns[c].type == TUNE_CELL_TEXT && !is_reason(t, c);
        for (int r = 0; r < t->row_count && text; r++) {
            size_t n = t->rows[r][c].absent ? 0 : strlen(t->rows[r][c].text);
            longest = n > longest ? n : longest;
        }
        widths[c] = text ? text_size(longest) : 8;
        sum += (size_t)widths[c];
    }
    return sum;
}

/* Write the rows as in the file; data is zeroed. */
static void write_rows(const struct tune_sample_rows *t, const int *widths, struct reasons *reasons, char *data)
{
    for (int r = 0; r < t->row_count; r++)
        for (int c = 0; c < t->column_count; c++) {
            const struct tune_cell *cell = &t->rows[r][c];
            double number = cell->absent ? NAN : cell->number;
            int64_t whole = is_reason(t, c) ? number_of(reasons, cell->absent ? "" : cell->text) : cell->whole;
            if (is_reason(t, c) || t->columns[c].type == TUNE_CELL_WHOLE)
                memcpy(data, &whole, sizeof whole);
            else if (t->columns[c].type == TUNE_CELL_NUMBER)
                memcpy(data, &number, sizeof number);
            else if (!cell->absent)
                memcpy(data, cell->text, strlen(cell->text));
            data += widths[c];
        }
}

static hid_t row_type(const struct tune_sample_rows *t, const int *widths, size_t row_bytes)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, row_bytes);
    size_t offset = 0;
    for (int c = 0; c < t->column_count && type >= 0; c++) {
        bool text = t->columns[c].type == TUNE_CELL_TEXT && !is_reason(t, c);
        TUNE_HDF5 member = text                                      ? text_type((size_t)widths[c])
                       : t->columns[c].type == TUNE_CELL_NUMBER ? H5Tcopy(H5T_IEEE_F64LE)
                                                                 : H5Tcopy(H5T_STD_I64LE);
        if (H5Tinsert(type, t->columns[c].name, offset, member) < 0) {
            tune_hdf5_close(type);
            type = H5I_INVALID_HID;
        }
        offset += (size_t)widths[c];
    }
    return type;
}

static int put_table(hid_t group, const struct tune_sample_rows *t, struct reasons *reasons)
{
    int *widths = calloc((size_t)t->column_count, sizeof *widths);
    size_t row_bytes = widths ? set_widths(t, widths) : 0;
    char *data = widths ? calloc((size_t)t->row_count + 1, row_bytes) : NULL;
    TUNE_HDF5 type = data ? row_type(t, widths, row_bytes) : H5I_INVALID_HID;
    if (data)
        write_rows(t, widths, reasons, data);
    TUNE_HDF5 dataset = type < 0 ? H5I_INVALID_HID
                                 : put_dataset(group, tune_sample_title(t->name), type, (hsize_t)t->row_count, data);
    int status = dataset < 0 ? -1 : put_attributes(dataset, t);
    free(data);
    free(widths);
    return status;
}

static int put_reasons(hid_t file, const struct reasons *reasons)
{
    size_t width;
    char *data = pack(reasons->texts, reasons->count, &width);
    TUNE_HDF5 type = data ? text_type(width) : H5I_INVALID_HID;
    TUNE_HDF5 dataset = type < 0 ? H5I_INVALID_HID : put_dataset(file, "reasons", type, reasons->count, data);
    free(data);
    return dataset < 0 ? -1 : 0;
}

static int put_file(hid_t file, const struct tune_sample_rows *tables, int count, struct reasons *reasons)
{
    int64_t version = TUNE_STORE_SCHEMA;
    TRY(put_attribute(file, "schema_version", H5T_STD_I64LE, 0, &version));
    TRY(put_text(file, "creator", "tune.c " TUNE_VERSION));
    TUNE_HDF5 plist = without_times(H5P_GROUP_CREATE);
    TUNE_HDF5 group = H5Gcreate2(file, "measurements", H5P_DEFAULT, plist, H5P_DEFAULT);
    TRY(group < 0 ? -1 : 0);
    for (int i = 0; i < count; i++)
        TRY(put_table(tables[i].name ? group : file, &tables[i], reasons));
    return put_reasons(file, reasons);
}

/* ---- the file in memory ---- */

/* Receives the core driver's buffer when the file is closed, because only then is its superblock
 * complete. */
struct buffer {
    char *data;
    size_t capacity;
};

static void *resize_buffer(void *data, size_t size, H5FD_file_image_op_t op, void *buffer)
{
    (void)op;
    void *larger = realloc(data, size);
    if (larger)
        ((struct buffer *)buffer)->capacity = size;
    return larger;
}

static void *make_buffer(size_t size, H5FD_file_image_op_t op, void *buffer)
{
    return resize_buffer(NULL, size, op, buffer);
}

static herr_t take_buffer(void *data, H5FD_file_image_op_t op, void *buffer)
{
    if (op == H5FD_FILE_IMAGE_OP_FILE_CLOSE)
        ((struct buffer *)buffer)->data = data;
    else
        free(data);
    return 0;
}

static void *share_buffer(void *buffer)
{
    return buffer;
}

static herr_t unshare_buffer(void *buffer)
{
    (void)buffer;
    return 0;
}

/* Create a file in memory. In the format of HDF5 1.10 all metadata have checksums, as rows do. So
 * damaged metadata are detected before use. */
static hid_t create(struct buffer *buffer)
{
    H5FD_file_image_callbacks_t calls = {make_buffer, NULL, resize_buffer, take_buffer, share_buffer, unshare_buffer, buffer};
    TUNE_HDF5 access = tune_hdf5_access();
    TUNE_HDF5 plist = without_times(H5P_FILE_CREATE);
    hid_t file = H5I_INVALID_HID;
    if (plist >= 0 && H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
        H5Pset_fapl_core(access, 1 << 20, 0) >= 0 && H5Pset_file_image_callbacks(access, &calls) >= 0)
        file = H5Fcreate("a sample file in memory", H5F_ACC_TRUNC, plist, access);
    return file;
}

/* Find the size of the file in its buffer, which may be larger. It is in the superblock (version 3:
 * byte 28). */
static int measure_file(const struct buffer *b, size_t *size)
{
    uint64_t end = 0;
    if (b->data && b->capacity > 48 && b->data[8] == 3)
        memcpy(&end, b->data + 28, sizeof end);
    *size = (size_t)end;
    return end > 48 && end <= b->capacity ? 0 : -1;
}

int tune_sample_image(const struct tune_sample_rows *tables, int count, char **image, size_t *size)
{
    size_t rows = 0;
    for (int i = 0; i < count; i++)
        rows += (size_t)tables[i].row_count;
    struct reasons reasons = {.texts = calloc(rows + 1, sizeof *reasons.texts)};
    struct tune_hdf5_quiet quiet;
    struct buffer buffer = {0};
    tune_hdf5_hush(&quiet);
    hid_t file = reasons.texts ? create(&buffer) : H5I_INVALID_HID;
    if (file >= 0)
        number_of(&reasons, "");
    int status = file < 0 ? -1 : put_file(file, tables, count, &reasons);
    if (file >= 0 && H5Fclose(file) < 0)
        status = -1;
    tune_hdf5_unhush(&quiet);
    free(reasons.texts);
    if (status == 0)
        status = measure_file(&buffer, size);
    if (status == 0) {
        *image = buffer.data;
        return 0;
    }
    free(buffer.data);
    return tune_error_set("cannot make a sample file of %zu rows%s%s", rows,
                          quiet.why[0] ? ": " : ", out of memory", quiet.why);
}
