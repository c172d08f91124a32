/* hdf5_quiet.h - use the HDF5 library without its output: nothing is printed, and its errors become
 * ours. A program that uses HDF5 itself keeps its own settings. Private to the two files that call
 * the library. */
#ifndef TUNE_STORES_HDF5_QUIET_H
#define TUNE_STORES_HDF5_QUIET_H

#include <hdf5.h>
#include <stdio.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "rows go between files, which are little-endian, and memory as they are");

/* The first error of a failed call between hush and unhush. The library would otherwise print
 * it. */
struct tune_hdf5_quiet {
    H5E_auto2_t report;
    void *data;
    char why[160];
};

static inline herr_t tune_hdf5_innermost(unsigned n, const H5E_error2_t *e, void *quiet)
{
    struct tune_hdf5_quiet *q = quiet;
    if (n == 0)
        snprintf(q->why, sizeof q->why, "the HDF5 library says: %s", e->desc ? e->desc : "");
    return 0;
}

static inline herr_t tune_hdf5_save_reason(hid_t stack, void *quiet)
{
    if (!((struct tune_hdf5_quiet *)quiet)->why[0])
        H5Ewalk2(stack, H5E_WALK_UPWARD, tune_hdf5_innermost, quiet);
    return 0;
}

static inline void tune_hdf5_hush(struct tune_hdf5_quiet *q)
{
    q->why[0] = 0;
    /* after a damaged file, its clean-up at exit would print an error */
    H5dont_atexit();
    H5Eget_auto2(H5E_DEFAULT, &q->report, &q->data);
    H5Eset_auto2(H5E_DEFAULT, tune_hdf5_save_reason, q);
}

static inline void tune_hdf5_unhush(const struct tune_hdf5_quiet *q)
{
    H5Eset_auto2(H5E_DEFAULT, q->report, q->data);
}

/* tune_hdf5_close - close any identifier, even that of a failed call. */
static inline void tune_hdf5_close(hid_t id)
{
    if (id >= 0)
        H5Idec_ref(id);
}

/* TUNE_HDF5 - declare an identifier that is closed at the end of its scope. If the call that made
 * it failed, later calls with it fail, too. */
static inline void tune_hdf5_leave(const hid_t *id)
{
    tune_hdf5_close(*id);
}
#define TUNE_HDF5 __attribute__((cleanup(tune_hdf5_leave))) hid_t

/* tune_hdf5_access - the access properties for opening files. Closing a file closes everything in
 * it. Files are not locked, because they never change in place, and some file systems lack
 * locks. */
static inline hid_t tune_hdf5_access(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0)
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
    if (access >= 0)
        H5Pset_file_locking(access, 0, 1);
#endif
    return access;
}

#endif
