/* prompt_template.c - parse sections and slots into parts. */
#include "core/array.h"
#include "templates/prompt_template.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "files/file.h"
#include "files/json.h"
#include "core/try.h"

#define FILE_LIMIT ((size_t)1 << 20)

/* The text being read, for messages. */
struct source {
    const char *name, *text, *end;
};

static int fail(const struct source *s, const char *at, const char *what)
{
    int line = 1;
    const char *begin = s->text;
    for (const char *p = s->text; p < at; p++)
        if (*p == '\n') {
            line++;
            begin = p + 1;
        }
    return tune_error_usage("%s:%d:%d: %s", s->name, line, (int)(at - begin) + 1, what);
}

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for a prompt template");
    return -1;
}

static int add_part(struct tune_prompt_template *t, const char *text, size_t size, int slot, bool trained)
{
    if (!tune_array_fit(&t->parts, (size_t)t->count, sizeof *t->parts))
        return no_memory();
    t->parts[t->count++] = (struct tune_prompt_part){text, size, slot, trained};
    return 0;
}

/* Add the slot [name, end) whose brace opens at `at`. */
static int add_slot(struct tune_prompt_template *t, const struct source *s, const char *name, const char *end, bool trained)
{
    size_t size = (size_t)(end - name);
    int slot = 0;
    while (slot < t->slot_count && (strlen(t->slots[slot]) != size || memcmp(t->slots[slot], name, size)))
        slot++;
    if (slot == TUNE_PROMPT_SLOTS)
        return fail(s, name, "too many different columns, expected at most 64");
    if (slot == t->slot_count) {
        t->slots[t->slot_count++] = memcpy(t->bytes + t->used, name, size);
        t->bytes[t->used + size] = 0;
        t->used += size + 1;
    }
    return add_part(t, t->slots[slot], size, slot, trained);
}

/* Make the text collected since begin a part. */
static int end_text(struct tune_prompt_template *t, size_t begin, bool trained)
{
    return t->used > begin ? add_part(t, t->bytes + begin, t->used - begin, -1, trained) : 0;
}

/* Read a section. Copies need no more room than the file, since a name and its NUL replace two
 * braces. */
static int read_section(struct tune_prompt_template *t, const struct source *s, const char *p, const char *end, bool trained)
{
    size_t begin = t->used;
    for (; p < end; p++) {
        bool brace = *p == '{' || *p == '}';
        if (*p == '\r' && p + 1 < end && p[1] == '\n')
            continue;
        if (brace && p + 1 < end && p[1] == *p) {
            p++;
        } else if (brace) {
            const char *name = p + 1, *close = name;
            if (*p == '}')
                return fail(s, p, "a '}' that closes nothing; write }} for the character");
            while (close < end && *close != '}' && *close != '{' && *close != '\n')
                close++;
            if (close == end || *close != '}')
                return fail(s, p, "a slot that does not end in '}' on its line; write {{ for the character");
            if (close == name)
                return fail(s, p, "a slot without a name, expected {column}");
            TRY(end_text(t, begin, trained));
            TRY(add_slot(t, s, name, close, trained));
            begin = t->used;
            p = close;
            continue;
        }
        t->bytes[t->used++] = *p;
    }
    return end_text(t, begin, trained);
}

/* 1: the line is [completion]; 0: [prompt]; -1: no heading. */
static int heading(const char *line, const char *end)
{
    static const char *const names[] = {"[prompt]", "[completion]"};
    size_t size = (size_t)(end - line);
    size -= size > 0 && end[-1] == '\r';
    for (int i = 0; i < 2; i++)
        if (size == strlen(names[i]) && !memcmp(line, names[i], size))
            return i;
    return -1;
}

static const char *line_end(const char *p, const char *end)
{
    const char *found = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return found ? found : end;
}

/* The end of the section's text: before the line end in front of `next`. */
static const char *before(const char *begin, const char *next)
{
    next -= next > begin && next[-1] == '\n';
    return next - (next > begin && next[-1] == '\r');
}

static int read_sections(struct tune_prompt_template *t, const struct source *s)
{
    const char *begin = NULL; /* start of the current section */
    int kind = -1, seen[2] = {0, 0};
    for (const char *p = s->text; p < s->end;) {
        const char *stop = line_end(p, s->end), *next = stop < s->end ? stop + 1 : stop;
        int found = heading(p, stop);
        if (found >= 0) {
            if (begin)
                TRY(read_section(t, s, begin, before(begin, p), kind == 1));
            kind = found;
            seen[kind] = 1;
            begin = next;
        } else if (!begin && *p != '#' && *p != '\n' && *p != '\r') {
            return fail(s, p, "text before the first heading; expected a line [prompt], or a remark that begins with #");
        }
        p = next;
    }
    if (begin)
        TRY(read_section(t, s, begin, before(begin, s->end), kind == 1));
    if (!seen[0] || !seen[1])
        return fail(s, s->end, seen[0] ? "no section [completion]: a line with this heading, and below it what is trained, "
                                         "{output} for one"
                                       : "no section [prompt]: a line with this heading, and below it what is not trained");
    for (int i = 0; i < t->count; i++)
        if (t->parts[i].trained && t->parts[i].slot >= 0)
            return 0;
    return fail(s, s->end, "no {column} in a [completion]: every row would be trained on the same text");
}

int tune_prompt_template_parse(struct tune_prompt_template *t, const char *name, const char *text, size_t size)
{
    size_t bad;
    memset(t, 0, sizeof *t);
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        size -= 3;
    }
    struct source s = {name, text, text + size};
    if (!tune_utf8_valid(text, size, &bad))
        return fail(&s, text + bad, "invalid UTF-8");
    const char *nul = size > 0 ? memchr(text, 0, size) : NULL;
    if (nul)
        return fail(&s, nul, "a NUL byte");
    if (!(t->bytes = malloc(size + 1)))
        return no_memory();
    t->hash = tune_hash64(text, size, 0);
    if (read_sections(t, &s) == 0)
        return 0;
    tune_prompt_template_free(t);
    return -1;
}

/* List the names in defaults/prompts: "instruction, sql, tone". */
static void list_names(char *names, size_t size)
{
    char folder[TUNE_PATH_MAX];
    struct dirent **entries = NULL;
    *names = 0;
    int count = tune_defaults_path(folder, "prompts") == 0 ? scandir(folder, &entries, NULL, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        size_t n = strlen(entries[i]->d_name), used = strlen(names);
        if (n > 4 && *entries[i]->d_name != '.' && !strcmp(entries[i]->d_name + n - 4, ".txt"))
            snprintf(names + used, size - used, "%s%.*s", used ? ", " : "", (int)n - 4, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

int tune_prompt_template_path(char *path, const char *path_or_name)
{
    char name[TUNE_PATH_MAX], names[512];
    if (tune_file_exists(path_or_name) && !tune_file_is_folder(path_or_name))
        return tune_path(path, "%s", path_or_name);
    if (!strchr(path_or_name, '/') && tune_path(name, "prompts/%s.txt", path_or_name) == 0 &&
        tune_defaults_path(path, name) == 0 && tune_file_exists(path))
        return 0;
    list_names(names, sizeof names);
    return tune_error_usage("`prompt_template` %s: no such file, and none of the names there are: "
                            "%s", path_or_name,
                            *names ? names : "(the folder defaults/prompts was not found)");
}

int tune_prompt_template_open(struct tune_prompt_template *t, const char *path_or_name)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    memset(t, 0, sizeof *t);
    TRY(tune_prompt_template_path(path, path_or_name));
    TRY(tune_file_read(path, FILE_LIMIT, &text, &size));
    int status = tune_prompt_template_parse(t, path, text, size);
    free(text);
    return status;
}

void tune_prompt_template_free(struct tune_prompt_template *t)
{
    free(t->parts);
    free(t->bytes);
    memset(t, 0, sizeof *t);
}
