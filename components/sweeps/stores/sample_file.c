/* sample_file.c - read sample files. Everything that the library finds is checked before it is
 * used. */
#include "sweeps/stores/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nearest.h"
#include "core/try.h"
#include "sweeps/stores/hdf5_quiet.h"

#define ROW_BYTES_MAX (16 << 20)

/* The file being read, for messages. */
struct reading {
    hid_t file;
    const char *path;
    size_t size;
    const char *table; /* "": the message is not about a table */
    struct tune_hdf5_quiet quiet;
};

static int broken(const struct reading *r, const char *format, ...) TUNE_PRINTF(2, 3);
static int broken(const struct reading *r, const char *format, ...)
{
    char text[512];
    FORMAT(text, format);
    return tune_error_set("%s%s%s: %s; tune.c does not write such sample files: move it out of the "
                          "store", r->path, r->table[0] ? ": table " : "", r->table,
                          text);
}

/* Report that the library cannot read something, usually because of a wrong checksum. */
static int unreadable(const struct reading *r, const char *what)
{
    return tune_error_set("%s: the file is damaged: %s%s%s%s: %s; replace it by a copy, or move it "
                          "out of the store", r->path, r->table[0] ? "table " : "",
                          r->table, r->table[0] ? ": " : "", what, r->quiet.why);
}

static int no_memory(const struct reading *r)
{
    return tune_error_cannot("out of memory while reading %s", r->path);
}

/* 1: the group has a hard link with this name; 0: it has none. */
static int has_link(const struct reading *r, hid_t group, const char *name)
{
    H5L_info_t info;
    htri_t there = H5Lexists(group, name, H5P_DEFAULT);
    if (there <= 0)
        return there < 0 ? unreadable(r, name) : 0;
    if (H5Lget_info(group, name, &info, H5P_DEFAULT) < 0)
        return unreadable(r, name);
    return info.type == H5L_TYPE_HARD ? 1 : broken(r, "\"%.100s\" is a link to something outside "
                                                      "the file", name);
}

static bool is_text_type(hid_t type)
{
    return H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && H5Tget_strpad(type) != H5T_STR_SPACEPAD;
}

/* ---- attributes ---- */

/* Read an attribute of count elements, if accept() accepts its type. *width: bytes of an element.
 * The caller frees *data. Attributes above 64 KiB are not read. */
static int read_attribute(const struct reading *r, hid_t object, const char *name, int64_t count, bool (*accept)(hid_t type),
                          char **data, size_t *width)
{
    *data = NULL;
    htri_t there = H5Aexists(object, name);
    if (there <= 0)
        return there < 0 ? unreadable(r, name) : broken(r, "it lacks the attribute \"%s\"", name);
    TUNE_HDF5 attribute = H5Aopen(object, name, H5P_DEFAULT);
    TUNE_HDF5 type = H5Aget_type(attribute);
    TUNE_HDF5 space = H5Aget_space(attribute);
    *width = space < 0 ? 0 : H5Tget_size(type);
    if (*width == 0)
        return unreadable(r, name);
    if (H5Sget_simple_extent_npoints(space) != count || *width > 65536 / (size_t)(count + 1) || !accept(type))
        return broken(r, "the attribute \"%s\" has a wrong type or size: expected %lld short "
                         "element%s", name, (long long)count,
                      count == 1 ? "" : "s");
    if (!(*data = calloc((size_t)count + 1, *width)))
        return no_memory(r);
    if (H5Aread(attribute, type, *data) >= 0)
        return 0;
    free(*data);
    *data = NULL;
    return unreadable(r, name);
}

static bool is_int64(hid_t type)
{
    return H5Tequal(type, H5T_STD_I64LE) > 0;
}

static bool is_int8(hid_t type)
{
    return H5Tequal(type, H5T_STD_I8LE) > 0;
}

static int check_schema(const struct reading *r)
{
    char *data;
    size_t width;
    int64_t version;
    TRY(read_attribute(r, r->file, "schema_version", 1, is_int64, &data, &width));
    memcpy(&version, data, sizeof version);
    free(data);
    if (version < 1)
        return broken(r, "its schema_version is %lld, expected %d", (long long)version, TUNE_STORE_SCHEMA);
    if (version > TUNE_STORE_SCHEMA)
        return tune_error_set("%s has schema version %lld, but this program reads only versions up "
                              "to %d: use a newer tune.c", r->path, (long long)version,
                              TUNE_STORE_SCHEMA);
    return 0;
}

/* ---- position of rows ---- */

static uint64_t piece_bytes(const struct tune_sample_extent *at)
{
    return (uint64_t)(at->piece_rows * at->row_bytes) + (at->fletcher ? 4 : 0);
}

static int check_piece(const struct reading *r, const struct tune_sample_extent *at, int64_t i)
{
    uint64_t bytes = piece_bytes(at);
    if (at->pieces[i] == HADDR_UNDEF || at->pieces[i] > r->size || bytes > r->size - at->pieces[i])
        return broken(r, "rows from %lld on are not in the file, which has %zu bytes", (long long)(i * at->piece_rows),
                      r->size);
    return 0;
}

static int locate_contiguous(const struct reading *r, hid_t dataset, struct tune_sample_extent *at)
{
    if (!(at->pieces = calloc(1, sizeof *at->pieces)))
        return no_memory(r);
    at->piece_rows = at->rows;
    at->pieces[0] = H5Dget_offset(dataset); /* this is also undefined if the rows are in another file */
    return check_piece(r, at, 0);
}

/* 1: the pieces have Fletcher-32 checksums; 0: no filter; -1: another filter. */
static int has_fletcher(const struct reading *r, hid_t plist)
{
    int count = H5Pget_nfilters(plist);
    unsigned flags, config;
    size_t values = 0;
    if (count == 0 || (count == 1 && H5Pget_filter2(plist, 0, &flags, &values, NULL, 0, NULL, &config) == H5Z_FILTER_FLETCHER32))
        return count;
    return broken(r, "its rows are compressed (to undo this: h5repack -f FLET)");
}

static int locate_chunks(const struct reading *r, hid_t dataset, hid_t plist, struct tune_sample_extent *at)
{
    hsize_t chunk, bytes;
    unsigned mask;
    haddr_t where;
    int fletcher = has_fletcher(r, plist);
    TRY(fletcher);
    at->fletcher = fletcher;
    if (H5Pget_chunk(plist, 1, &chunk) != 1 || chunk == 0)
        return unreadable(r, "its chunks");
    if (chunk > r->size / (uint64_t)at->row_bytes)
        return broken(r, "chunks of %llu rows do not fit a file of %zu bytes", (unsigned long long)chunk, r->size);
    at->piece_rows = (int64_t)chunk;
    int64_t count = (at->rows + at->piece_rows - 1) / at->piece_rows;
    if (!(at->pieces = calloc((size_t)count + 1, sizeof *at->pieces)))
        return no_memory(r);
    for (int64_t i = 0; i < count; i++) {
        hsize_t first = (hsize_t)(i * at->piece_rows);
        if (H5Dget_chunk_info_by_coord(dataset, &first, &mask, &where, &bytes) < 0)
            return unreadable(r, "its chunks");
        if (where != HADDR_UNDEF && (mask != 0 || bytes != piece_bytes(at)))
            return broken(r, "a chunk of %llu bytes%s, expected %llu", (unsigned long long)bytes,
                          mask ? " without its checksum" : "", (unsigned long long)piece_bytes(at));
        at->pieces[i] = where;
        TRY(check_piece(r, at, i));
    }
    return 0;
}

static bool is_uint64(hid_t type)
{
    return H5Tequal(type, H5T_STD_U64LE) > 0;
}

static int read_hashes(const struct reading *r, hid_t dataset, struct tune_sample_extent *at)
{
    char *data;
    size_t width;
    htri_t there = at->rows > 0 ? H5Aexists(dataset, TUNE_SAMPLE_HASHES) : 0;
    if (there <= 0)
        return there < 0 ? unreadable(r, TUNE_SAMPLE_HASHES) : 0;
    TRY(read_attribute(r, dataset, TUNE_SAMPLE_HASHES, (at->rows + at->piece_rows - 1) / at->piece_rows, is_uint64, &data, &width));
    at->hashes = (uint64_t *)(void *)data;
    return 0;
}

/* Find the position and size of a 1-d dataset with elements of row_bytes. */
static int locate(const struct reading *r, hid_t dataset, size_t row_bytes, struct tune_sample_extent *at)
{
    TUNE_HDF5 space = H5Dget_space(dataset);
    TUNE_HDF5 plist = H5Dget_create_plist(dataset);
    hsize_t rows = 0;
    if (space < 0 || plist < 0)
        return unreadable(r, "its layout");
    if (H5Sget_simple_extent_ndims(space) != 1 || H5Sget_simple_extent_dims(space, &rows, NULL) != 1)
        return broken(r, "expected a dataset of one dimension");
    if (row_bytes == 0 || row_bytes > ROW_BYTES_MAX || rows > r->size / row_bytes || rows > INT32_MAX)
        return broken(r, "%llu rows of %zu bytes do not fit a file of %zu bytes", (unsigned long long)rows, row_bytes, r->size);
    *at = (struct tune_sample_extent){.rows = (int64_t)rows, .row_bytes = (int64_t)row_bytes};
    H5D_layout_t layout = H5Pget_layout(plist);
    if (rows == 0)
        return 0;
    TRY(layout == H5D_CONTIGUOUS ? locate_contiguous(r, dataset, at)
        : layout == H5D_CHUNKED  ? locate_chunks(r, dataset, plist, at)
                                 : broken(r, "its rows have a storage layout that tune.c does not "
                                             "read (compact or virtual)"));
    return read_hashes(r, dataset, at);
}

/* ---- columns ---- */

/* Find the key or request column with this name; NULL: none. */
static const struct tune_column *known_column(const char *table, const char *name)
{
    for (int i = 0; i < (table ? TUNE_KEYS : TUNE_REQUEST_KEYS); i++) {
        const struct tune_column *k = table ? tune_key_column((enum tune_key)i) : tune_request_column((enum tune_request_key)i);
        if (!strcmp(k->name, name))
            return k;
    }
    return NULL;
}

static const char *type_words(enum tune_cell_type type)
{
    return type == TUNE_CELL_TEXT ? "a text" : type == TUNE_CELL_WHOLE ? "an int64" : "a float64";
}

static int read_column_type(const struct reading *r, const struct tune_sample_table *t, hid_t type, struct tune_sample_column *c)
{
    const struct tune_column *known = known_column(t->name, c->column.name);
    bool numbered = t->name && known == tune_key_column(TUNE_KEY_REASON);
    size_t size = H5Tget_size(type);
    if (is_text_type(type) && size <= TUNE_STORE_TEXT_MAX + 8)
        c->column.type = TUNE_CELL_TEXT;
    else if (is_int64(type))
        c->column.type = TUNE_CELL_WHOLE;
    else if (H5Tequal(type, H5T_IEEE_F64LE) > 0)
        c->column.type = TUNE_CELL_NUMBER;
    else
        return broken(r, "its column \"%.100s\" is neither a short fixed string nor a little-endian int64 or float64",
                      c->column.name);
    if (known && c->column.type != (numbered ? TUNE_CELL_WHOLE : known->type))
        return broken(r, "its column \"%s\" is %s, expected %s", c->column.name, type_words(c->column.type),
                      type_words(numbered ? TUNE_CELL_WHOLE : known->type));
    if (numbered) {
        c->reason = true;
        c->column.type = TUNE_CELL_TEXT;
    }
    c->size = (int)size;
    return c->offset + c->size <= t->at.row_bytes ? 0 : broken(r, "its column \"%.100s\" lies outside the row", c->column.name);
}

/* Copy element i of an attribute of texts, with a NUL. The caller frees it. */
static char *element(const char *data, size_t width, int i)
{
    return strndup(data + (size_t)i * width, width);
}

static int read_roles(const struct reading *r, hid_t dataset, struct tune_sample_table *t)
{
    static const char *const names[] = {"key", "input", "target"};
    char *roles = NULL, *units = NULL, *whole = NULL;
    size_t role_width = 0, unit_width = 0, one;
    int n = t->column_count, status = read_attribute(r, dataset, "roles", n, is_text_type, &roles, &role_width);
    if (status == 0)
        status = read_attribute(r, dataset, "units", n, is_text_type, &units, &unit_width);
    if (status == 0)
        status = read_attribute(r, dataset, "whole", n, is_int8, &whole, &one);
    for (int i = 0; i < n && status == 0; i++) {
        struct tune_column *c = &t->columns[i].column;
        char *role = element(roles, role_width, i);
        if (!role || !(c->unit = element(units, unit_width, i)))
            status = no_memory(r);
        int k = role ? tune_name_find(names, 3, role) : 0;
        if (k < 0)
            status = broken(r, "its column \"%.100s\" has the role \"%.20s\", expected key, input or target", c->name, role);
        c->role = (enum tune_column_role)(k < 0 ? 0 : k);
        c->whole = whole[i] != 0;
        free(role);
    }
    free(roles);
    free(units);
    free(whole);
    return status;
}

static int read_columns(const struct reading *r, hid_t dataset, hid_t type, struct tune_sample_table *t)
{
    int n = H5Tget_nmembers(type);
    if (n < 1)
        return broken(r, "it has no columns");
    if (!(t->columns = calloc((size_t)n, sizeof *t->columns)))
        return no_memory(r);
    for (int i = 0; i < n; i++) {
        struct tune_sample_column *c = &t->columns[t->column_count++];
        TUNE_HDF5 member = H5Tget_member_type(type, (unsigned)i);
        char *name = H5Tget_member_name(type, (unsigned)i);
        if (member < 0 || !name) {
            H5free_memory(name);
            return unreadable(r, "its columns");
        }
        c->column.name = strdup(name);
        H5free_memory(name);
        if (!c->column.name)
            return no_memory(r);
        if (!*c->column.name)
            return broken(r, "a column has no name");
        c->offset = (int64_t)H5Tget_member_offset(type, (unsigned)i);
        TRY(read_column_type(r, t, member, c));
        for (int k = 0; k < i; k++)
            if (!strcmp(t->columns[k].column.name, c->column.name))
                return broken(r, "two columns have the name \"%.100s\"", c->column.name);
    }
    return read_roles(r, dataset, t);
}

/* ---- tables ---- */

static int read_table(struct reading *r, hid_t group, const char *link, struct tune_sample_table *t)
{
    r->table = link;
    TUNE_HDF5 dataset = H5Dopen2(group, link, H5P_DEFAULT);
    TUNE_HDF5 type = H5Dget_type(dataset);
    if (type < 0)
        return unreadable(r, "it cannot be opened as a table");
    if (H5Tget_class(type) != H5T_COMPOUND)
        return broken(r, "expected a table of columns (a compound dataset)");
    TRY(locate(r, dataset, H5Tget_size(type), &t->at));
    TRY(read_columns(r, dataset, type, t));
    r->table = "";
    return 0;
}

static int read_reasons(struct reading *r, struct tune_sample_extent *at)
{
    int there = has_link(r, r->file, "reasons");
    if (there <= 0)
        return there;
    r->table = "reasons";
    TUNE_HDF5 dataset = H5Dopen2(r->file, "reasons", H5P_DEFAULT);
    TUNE_HDF5 type = H5Dget_type(dataset);
    if (type < 0)
        return unreadable(r, "it cannot be opened");
    if (!is_text_type(type) || H5Tget_size(type) > TUNE_STORE_TEXT_MAX + 8)
        return broken(r, "expected strings of a short fixed length");
    return locate(r, dataset, H5Tget_size(type), at);
}

/* Add a table to f, with a copy of its name (NULL: the requests). */
static int add_table(struct reading *r, struct tune_sample_file *f, hid_t group, const char *link, const char *name)
{
    struct tune_sample_table *t = &f->tables[f->table_count];
    if (name && !(t->name = strdup(name)))
        return no_memory(r);
    f->table_count++;
    return read_table(r, group, link, t);
}

static int read_measurements(struct reading *r, struct tune_sample_file *f, hid_t group)
{
    H5G_info_t info;
    char name[TUNE_STORE_NAME_MAX + 1];
    if (H5Gget_info(group, &info) < 0)
        return unreadable(r, "measurements");
    if (info.nlinks > r->size / 8)
        return broken(r, "the group measurements has %llu tables, which is impossible in a file of "
                         "this size", (unsigned long long)info.nlinks);
    f->tables = calloc((size_t)info.nlinks + 1, sizeof *f->tables);
    if (!f->tables)
        return no_memory(r);
    for (hsize_t i = 0; i < info.nlinks; i++) {
        ssize_t n = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
        if (n < 0)
            return unreadable(r, "measurements");
        if (n == 0 || (size_t)n >= sizeof name || !strcmp(name, TUNE_STORE_REQUESTS))
            return broken(r, "a table of measurements must not have the name \"%.100s\"", name);
        TRY(has_link(r, group, name));
        TRY(add_table(r, f, group, name, name));
    }
    return 0;
}

static int read_file(struct reading *r, struct tune_sample_file *f)
{
    TRY(check_schema(r));
    TUNE_HDF5 plist = H5Fget_create_plist(r->file);
    hsize_t block = 1;
    if (H5Pget_userblock(plist, &block) < 0 || block != 0)
        return broken(r, "the file begins with a user block, which tune.c does not read");
    int there = has_link(r, r->file, "measurements");
    TRY(there);
    if (there) {
        TUNE_HDF5 group = H5Gopen2(r->file, "measurements", H5P_DEFAULT);
        TRY(group < 0 ? unreadable(r, "measurements") : read_measurements(r, f, group));
    } else if (!(f->tables = calloc(1, sizeof *f->tables))) {
        return no_memory(r);
    }
    TRY(there = has_link(r, r->file, TUNE_STORE_REQUESTS));
    if (there)
        TRY(add_table(r, f, r->file, TUNE_STORE_REQUESTS, NULL));
    return read_reasons(r, &f->reasons);
}

/* Duplicate the library's descriptor, because the file's name may refer to another file by now. */
static int take_descriptor(struct reading *r)
{
    struct stat st;
    void *handle;
    int fd = H5Fget_vfd_handle(r->file, H5P_DEFAULT, &handle) < 0 ? -1 : fcntl(*(int *)handle, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        r->size = (size_t)st.st_size;
        return fd;
    }
    tune_error_set("cannot read %s: %s", r->path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Check for superblock version 3, because then all metadata have checksums. Other files are
 * refused, because the library can crash on damaged ones. */
static int check_head(const struct reading *r, int fd)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n\x03";
    char head[sizeof signature - 1];
    if (r->size < sizeof head)
        return broken(r, "the file has %zu bytes, too few for an HDF5 file", r->size);
    TRY(tune_file_read_at(fd, r->path, 0, head, sizeof head));
    if (memcmp(head, signature, 8) != 0)
        return broken(r, "the file is not an HDF5 file");
    return head[8] == signature[8] ? 0 : broken(r, "the HDF5 file has superblock version %d, "
                                                   "expected 3", head[8]);
}

struct tune_sample_file *tune_sample_open(const char *path, int *fd)
{
    struct reading r = {.file = H5I_INVALID_HID, .path = path, .table = ""};
    struct tune_sample_file *f = calloc(1, sizeof *f);
    if (!f) {
        no_memory(&r);
        return NULL;
    }
    f->users = 1;
    tune_hdf5_hush(&r.quiet);
    hid_t access = tune_hdf5_access();
    *fd = tune_file_open(path, &r.size); /* this refuses pipes and folders */
    int status = *fd < 0 ? -1 : check_head(&r, *fd);
    if (status == 0) {
        close(*fd);
        r.file = access < 0 ? H5I_INVALID_HID : H5Fopen(path, H5F_ACC_RDONLY, access);
        *fd = r.file < 0 ? unreadable(&r, "its beginning") : take_descriptor(&r);
        status = *fd < 0 ? -1 : read_file(&r, f);
    }
    tune_hdf5_close(access);
    tune_hdf5_close(r.file);
    tune_hdf5_unhush(&r.quiet);
    if (status == 0)
        return f;
    if (*fd >= 0)
        close(*fd);
    tune_sample_free(f);
    return NULL;
}

void tune_sample_free(struct tune_sample_file *f)
{
    if (!f || --f->users > 0)
        return;
    for (int i = 0; i < f->table_count; i++) {
        struct tune_sample_table *t = &f->tables[i];
        for (int k = 0; k < t->column_count; k++) {
            free((char *)(uintptr_t)t->columns[k].column.name);
            free((char *)(uintptr_t)t->columns[k].column.unit);
        }
        free(t->columns);
        free(t->at.pieces);
        free(t->at.hashes);
        free(t->name);
    }
    free(f->tables);
    free(f->reasons.pieces);
    free(f->reasons.hashes);
    free(f);
}

const struct tune_sample_table *tune_sample_table(const struct tune_sample_file *f, const char *name)
{
    for (int i = 0; i < f->table_count; i++)
        if (name ? f->tables[i].name && !strcmp(f->tables[i].name, name) : !f->tables[i].name)
            return &f->tables[i];
    return NULL;
}
