/* build_id.c - read NT_GNU_BUILD_ID of an ELF file, or hash another file. */
#include "machine/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "files/file.h"
#include "core/try.h"

/* Find the id in size bytes of notes. 1: found; 0: not there. */
static int find_note(const char *notes, size_t size, char id[TUNE_BUILD_ID_SIZE])
{
    size_t at = 0;
    while (size - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        at += sizeof note;
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3, data = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > size - at || data > size - at - name)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(notes + at, "GNU", 4) && note.n_descsz > 0 &&
            note.n_descsz <= (TUNE_BUILD_ID_SIZE - 1) / 2) {
            for (size_t i = 0; i < note.n_descsz; i++)
                sprintf(id + 2 * i, "%02x", (unsigned char)notes[at + name + i]);
            return 1;
        }
        at += name + data;
    }
    return 0;
}

static bool is_elf(const struct tune_mapping *m)
{
    const unsigned char *e = (const unsigned char *)m->data;
    return m->size >= sizeof(ElfW(Ehdr)) && !memcmp(e, ELFMAG, SELFMAG) &&
           e[EI_CLASS] == (sizeof(ElfW(Ehdr)) == sizeof(Elf64_Ehdr) ? ELFCLASS64 : ELFCLASS32) &&
           e[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
}

/* Find the id of an ELF file. 1: found; 0: not there; -1: a broken file. */
static int of_elf(const char *path, const struct tune_mapping *m, char id[TUNE_BUILD_ID_SIZE])
{
    ElfW(Ehdr) head;
    memcpy(&head, m->data, sizeof head);
    for (size_t i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) part;
        size_t table = (size_t)head.e_phoff, at = table + i * sizeof part;
        if (head.e_phentsize != sizeof part || table > m->size || at > m->size || m->size - at < sizeof part)
            return tune_error_set("%s: a broken ELF file: its program headers lie outside it", path);
        memcpy(&part, m->data + at, sizeof part);
        if (part.p_type != PT_NOTE)
            continue;
        if (part.p_offset > m->size || part.p_filesz > m->size - part.p_offset)
            return tune_error_set("%s: a broken ELF file: its notes lie outside it", path);
        if (find_note(m->data + part.p_offset, (size_t)part.p_filesz, id))
            return 1;
    }
    return 0;
}

int tune_build_id(const char *path, char id[TUNE_BUILD_ID_SIZE])
{
    struct tune_mapping m;
    int found = 0;
    TRY(tune_file_map(&m, path));
    bool elf = is_elf(&m);
    if (elf)
        found = of_elf(path, &m, id);
    if (found == 0)
        snprintf(id, TUNE_BUILD_ID_SIZE, "%s-%016llx", elf ? "file" : "text", (unsigned long long)tune_hash64(m.data, m.size, 0));
    tune_file_unmap(&m);
    return found < 0 ? -1 : 0;
}
