/* kernel_bounds.h - registers and shared memory of each kernel, as nvcc made it for sm_90a.
 * They are read from tests/cuda_compiled.txt, for cuda_paper.cu. */
#ifndef CUDA_ON_CPU_KERNEL_BOUNDS_H
#define CUDA_ON_CPU_KERNEL_BOUNDS_H

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

struct resources {
    int registers, stack, shared;
    bool tensor_cores;
};

static std::map<std::string, resources> compiled;

static void replace_all(std::string *s, const std::string &from, const std::string &to)
{
    for (size_t at; (at = s->find(from)) != std::string::npos;)
        s->replace(at, from.size(), to);
}

/* The name of a kernel, as the table of bounds writes it. */
static std::string kernel_name(const void *kernel)
{
    Dl_info info;
    int status;
    if (!dladdr(kernel, &info) || !info.dli_sname)
        return "?";
    char *plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    std::string name = plain ? plain : info.dli_sname;
    free(plain);
    name = name.substr(0, name.find('('));
    if (name.compare(0, 5, "void ") == 0)
        name = name.substr(5);
    replace_all(&name, "__nv_bfloat16", "bf16");
    replace_all(&name, "> >", ">>");
    return name;
}

/* Read the column of sm_90a. */
static bool read_bounds(const char *path)
{
    std::ifstream file(path);
    std::string line, word;
    size_t column = 0, columns = 0;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        if (line.compare(0, 11, "# columns: ") == 0) {
            words >> word >> word;
            while (words >> word && word != "kernel") {
                column = word == "sm_90a" ? columns : column;
                columns++;
            }
        }
        if (line.empty() || line[0] == '#')
            continue;
        resources r = {};
        for (size_t i = 0; i < columns && words >> word; i++)
            if (i == column) {
                sscanf(word.c_str(), "%d/%d/%d", &r.registers, &r.stack, &r.shared);
                r.tensor_cores = word.find("/mma") != std::string::npos;
            }
        std::getline(words >> std::ws, word);
        compiled[word] = r;
    }
    return !compiled.empty();
}

#endif
