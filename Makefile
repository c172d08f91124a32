# tune.c - see `make help`
# Without this GNU make tries its built-in rules in chains with ours: over a minute and a gigabyte, before the first command.
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
BUILD  ?= build
CC     ?= cc
PREFIX ?= /usr/local
OPT    ?= -O3
SAN    ?=
OPENMP ?= -fopenmp
OBJCOPY ?= objcopy
OBJDUMP ?= objdump
V      ?= 0

Q0 = @printf '  %-4s %s\n' '$(1)' '$(2)';
say = $(if $(filter 0,$(V)),$(call Q0,$(1),$(2)))

# What is installed: found once by tools/configure.sh (pkg-config, then compiling four lines), kept in $(BUILD)/config.mk,
# with the instruction sets that this compiler can make kernels for.
# Every variable in it can be set by hand: make OPENBLAS_CFLAGS=-I/x OPENBLAS_LIBS="-L/x -lopenblas"
-include $(BUILD)/config.mk
$(BUILD)/config.mk: tools/configure.sh
	@mkdir -p $(BUILD)
	@CC="$(CC)" sh tools/configure.sh $@

CFLAGS   = $(OPT) $(ARCH) -g -std=c11 -Wall -Wextra -Werror=implicit-function-declaration -Werror=incompatible-pointer-types \
           -ffp-contract=fast -fno-math-errno -fno-trapping-math $(OPENMP) -fPIC -ffile-prefix-map=$(CURDIR)=. $(SAN) $(EXTRA_CFLAGS)
# The .d files name objects by $(BUILD), because make may be called with another name of the same folder.
CPPFLAGS = -D_GNU_SOURCE -Icomponents -MMD -MP -MT '$$(BUILD)$(@:$(BUILD)%=%)' $(CJSON_CFLAGS) $(EXTRA_CPPFLAGS)
# -rdynamic: tune_cuda.so calls functions of the program that opens it
LDFLAGS  = -rdynamic -Wl,--as-needed -Wl,--build-id $(SAN) $(EXTRA_LDFLAGS)
LIBS     = $(OPENBLAS_LIBS) $(CJSON_LIBS) $(OPENMP) -ldl -lpthread -lm

# Two libraries. libtune.a is for training and needs cJSON and OpenBLAS; libtune_sweeps.a is for measuring
# and also needs HDF5. SWEEPERS link both. SWEEPS is empty where HDF5 is missing: then make leaves SWEEPERS
# out and says so. No program links libyaml, which is opened to read YAML. YAML is empty where its header is
# missing: then reading YAML is an error, and make says so.
LIBRARY  = $(BUILD)/libtune.a
SWEEPS   = $(SWEEPS_FOUND)$(filter command environment,$(origin HDF5_LIBS))
YAML     = $(YAML_FOUND)$(filter command environment,$(origin YAML_CFLAGS))
SWEEPS_LIBRARY = $(BUILD)/libtune_sweeps.a
SWEEPS_LIBS    = $(HDF5_LIBS)
SWEEPS_OBJECTS = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard components/sweeps/*/*.c))
STUDIO_TESTS = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/studio/test_*.c))
SWEEPERS := $(addprefix $(BUILD)/,space sweep samples studio $(basename $(shell grep -ls '"sweeps/' tests/*/*.c))) $(STUDIO_TESTS)
PKG_CONFIG = tune.pc $(if $(SWEEPS),tune_sweeps.pc)
# The studio needs libmicrohttpd besides. STUDIO is empty where that is missing. Its tests in C do without.
STUDIO   = $(STUDIO_FOUND)$(filter command environment,$(origin MICROHTTPD_LIBS))
# Ranks on CPUs need MPI. MPI is empty where that is missing.
MPI      = $(MPI_FOUND)$(filter command environment,$(origin MPI_LIBS))
# Ranks on GPUs need NCCL. NCCL is empty where that is missing.
NCCL     = $(if $(filter 0,$(CUDA)),,$(NCCL_FOUND)$(filter command environment,$(origin NCCL_LIBS)))
possible  = $(filter-out $(if $(SWEEPS),,$(SWEEPERS)) $(if $(STUDIO),,$(BUILD)/studio),$1)

# The kernels of the CPU are compiled once for each instruction set: see components/devices/cpu/open.c.
KERNELS  = $(filter-out %/open.c,$(wildcard components/devices/cpu/*.c))
SOURCES  = $(filter-out $(KERNELS) components/flags/program.c components/sweeps/% components/comm/mpi/% components/comm/nccl/%,$(wildcard components/*/*.c components/*/*/*.c))
SETS     = $(if $(filter components/devices/cpu/open.c,$(SOURCES)),$(CPU_SETS:%=$(BUILD)/obj/sets/%.o))
OBJECTS  = $(SOURCES:%.c=$(BUILD)/obj/%.o) $(SETS)
PROGRAM  = $(BUILD)/obj/components/flags/program.o
RECIPES  = $(patsubst recipes/%.c,$(BUILD)/%,$(wildcard recipes/*.c))
TOOLS    = $(call possible,$(patsubst tools/%.c,$(BUILD)/%,$(wildcard tools/*.c)))
MAKERS   = $(patsubst datasets/%.c,$(BUILD)/%,$(wildcard datasets/*.c))
PEER_PROGRAMS = $(call possible,$(patsubst tests/peers/%.c,$(BUILD)/tests/peers/%,$(wildcard tests/peers/*.c)))
HELPERS  = $(call possible,$(patsubst tests/helpers/%.c,$(BUILD)/tests/helpers/%,$(wildcard tests/helpers/*.c)))
BENCHES  = $(call possible,$(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(wildcard tests/bench/*.c)))
FAR      = $(BUILD)/tests/libfar.a
TESTS    = $(call possible,$(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/*/test_*.c)))
TEST_SCRIPTS = $(filter-out tests/cuda_on_cpu/%,$(wildcard tests/*/test_*.sh))
FUZZERS  = $(call possible,$(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(filter-out %/replay.c,$(wildcard tests/fuzz/*.c))))
REPLAY  ?= $(BUILD)/obj/tests/fuzz/replay.o

all: found $(RECIPES) $(TOOLS) $(MAKERS) $(if $(MPI),$(BUILD)/tune_mpi.so) $(if $(NCCL),$(BUILD)/tune_nccl.so) $(addprefix $(BUILD)/,$(PKG_CONFIG)) $(if $(RECIPE),$(BUILD)/$(basename $(notdir $(RECIPE))))

found: $(BUILD)/config.mk
	@cat $(BUILD)/config.mk.found
	@$(if $(SWEEPS),,echo "# left out: space, sweep, samples and studio, which need HDF5")
	@$(if $(and $(SWEEPS),$(if $(STUDIO),,1)),echo "# left out: studio. It needs libmicrohttpd")
	@$(if $(YAML),,echo "# without the header of libyaml no YAML is read: neither space files nor a --config in YAML")

# Programs have static pattern rules: with patterns that match any file under $(BUILD), make searches for ways to make
# every header and .d file.
.SUFFIXES:

$(BUILD)/obj/%.o: %.c $(BUILD)/config.mk
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(CPPFLAGS) $(OPENBLAS_CFLAGS) $(CFLAGS) -c $< -o $@

# Their numbers are compared bit for bit with other people's: no product and sum in one rounding.
$(BUILD)/obj/components/files/gguf_blocks.o $(BUILD)/obj/components/core/nf4.o $(CPU_SETS:%=$(BUILD)/obj/sets/%/components/core/nf4.o): CFLAGS += -ffp-contract=off

# One object for each instruction set. Only its struct tune_cpu_isa can be seen from outside. Kernels read NF4 with nf4.c.
define set
$(BUILD)/obj/sets/$1/%.o: %.c $(BUILD)/config.mk
	@mkdir -p $$(@D)
	$$(call say,cc,$$< $1)$$(CC) $$(CPPFLAGS) $$(OPENBLAS_CFLAGS) -DTUNE_CPU_ISA=tune_cpu_isa_$1 \
	    -DTUNE_CPU_NAME='"$(subst _,-,$1)"' $$(CFLAGS) $(SETS_OPT) $(CPU_$1) -c $$< -o $$@
$(BUILD)/obj/sets/$1.o: $(patsubst %.c,$(BUILD)/obj/sets/$1/%.o,$(KERNELS) components/core/nf4.c)
	$$(call say,set,$$@)$$(CC) -r -nostdlib $$^ -o $$@ && $$(OBJCOPY) --keep-global-symbol=tune_cpu_isa_$1 $$@
endef
$(foreach s,$(CPU_SETS),$(eval $(call set,$s)))
$(BUILD)/obj/components/devices/cpu/open.o: CPPFLAGS += -D'TUNE_CPU_ISAS(F)=$(foreach s,$(CPU_SETS),F($s))'

$(SWEEPS_OBJECTS): CPPFLAGS += $(HDF5_CFLAGS)
$(BUILD)/obj/components/files/yaml.o: CPPFLAGS += $(if $(YAML),$(YAML_CFLAGS),-DTUNE_WITHOUT_YAML)

$(LIBRARY): $(OBJECTS)
$(SWEEPS_LIBRARY): $(SWEEPS_OBJECTS)
$(LIBRARY) $(SWEEPS_LIBRARY):
	@rm -f $@
	$(call say,ar,$@)$(AR) rcs $@ $^

# A static library stands behind those that call it.
link = $(call say,link,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter $(SWEEPS_LIBRARY),$^) \
       $(filter-out $(SWEEPS_LIBRARY),$(filter %.a,$^)) $(MORE_LIBS) $(LIBS) -o $@
$(SWEEPERS): $(SWEEPS_LIBRARY)
$(SWEEPERS): MORE_LIBS += $(SWEEPS_LIBS)
# fit reads a store where HDF5 is, and does without elsewhere.
$(BUILD)/fit: $(if $(SWEEPS),$(SWEEPS_LIBRARY))
$(BUILD)/fit: MORE_LIBS += $(if $(SWEEPS),$(SWEEPS_LIBS))
$(BUILD)/obj/tools/fit/measured.o: CPPFLAGS += $(if $(SWEEPS),,-DTUNE_WITHOUT_SWEEPS)

# A recipe carries its own source: the run folder keeps what really ran.
embed = printf '.section .rodata\n.global tune_recipe_source, tune_recipe_source_end\ntune_recipe_source:\n.incbin "%s"\ntune_recipe_source_end:\n.byte 0\n.section .note.GNU-stack,"",%%progbits\n' '$<' \
  | $(CC) -x assembler -c - -o $@
$(BUILD)/obj/%.source.o: %.c
	@mkdir -p $(@D)
	$(call say,text,$<)$(embed)

$(RECIPES): $(BUILD)/%: $(BUILD)/obj/recipes/%.o $(BUILD)/obj/recipes/%.source.o $(PROGRAM) $(LIBRARY)
	$(link)

# A tool too long for one file keeps the others in a folder of its name.
PARTS    = $(wildcard tools/*/*.c)
$(TOOLS): $(BUILD)/%: $(BUILD)/obj/tools/%.o $(PROGRAM) $(LIBRARY)
	$(link)
$(foreach p,$(PARTS),$(eval $(BUILD)/$(notdir $(patsubst %/,%,$(dir $(p)))): $(BUILD)/obj/$(p:.c=.o)))

# The studio carries its page: each file as studio_page_NAME, with _ for other characters.
PAGE     = $(wildcard tools/studio/page/*)
$(BUILD)/studio: $(PAGE:%=$(BUILD)/obj/%.o)
$(BUILD)/studio: MORE_LIBS += $(MICROHTTPD_LIBS)
$(BUILD)/obj/tools/studio/http.o: CPPFLAGS += $(MICROHTTPD_CFLAGS)
$(PAGE:%=$(BUILD)/obj/%.o): $(BUILD)/obj/%.o: %
	@mkdir -p $(@D)
	$(call say,text,$<)name=studio_page_$$(echo '$(notdir $<)' | tr -c 'A-Za-z0-9\n' _) && \
	printf '.section .rodata\n.global %s, %s_end\n%s:\n.incbin "%s"\n%s_end:\n.byte 0\n.section .note.GNU-stack,"",%%progbits\n' \
	    $$name $$name $$name '$<' $$name | $(CC) -x assembler -c - -o $@

# All of the studio but the server, for its tests. The fuzz target has a table of routes of its own.
STUDIO_PARTS = $(filter-out %/http.o,$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tools/studio/*.c)) $(PAGE:%=$(BUILD)/obj/%.o))
$(STUDIO_TESTS): $(STUDIO_PARTS) $(PROGRAM)
$(BUILD)/tests/fuzz/routes: $(addprefix $(BUILD)/obj/tools/studio/,route.o guard.o secrets.o)

$(MAKERS): $(BUILD)/%: $(BUILD)/obj/datasets/%.o $(PROGRAM) $(LIBRARY)
	$(link)

# The far device of tests/far, for the tests that open it.
$(FAR): $(BUILD)/obj/tests/far/far.o
	@mkdir -p $(@D)
	$(call say,ar,$@)rm -f $@ && $(AR) rcs $@ $^

# Only the tests know cmocka: the benches and their helpers build where it is not installed.
$(TESTS:$(BUILD)/%=$(BUILD)/obj/%.o): CPPFLAGS += -Itests $(CMOCKA_CFLAGS)
$(TESTS): MORE_LIBS += $(CMOCKA_LIBS)
$(TESTS) $(HELPERS) $(PEER_PROGRAMS) $(BENCHES): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(FAR) $(LIBRARY)
	@mkdir -p $(@D)
	$(link)

# Fuzz targets with a main that replays inputs; `make fuzz` builds them with libFuzzer's in its place.
$(FUZZERS): $(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(REPLAY) $(LIBRARY)
	@mkdir -p $(@D)
	$(link)

# make RECIPE=/elsewhere/mine.c builds $(BUILD)/mine from a file outside this tree.
ifdef RECIPE
mine := $(basename $(notdir $(RECIPE)))
ifneq ($(filter $(BUILD)/$(mine),$(RECIPES) $(TOOLS) $(MAKERS)),)
$(error RECIPE=$(RECIPE): $(mine) is a program of this tree already; give the file another name)
endif
$(BUILD)/obj/outside/$(mine).o: $(RECIPE) $(BUILD)/config.mk
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
	@sed -i 's|: $< *|: |' $(@:.o=.d) # it may lie elsewhere tomorrow
$(BUILD)/obj/outside/$(mine).source.o: $(RECIPE)
	@mkdir -p $(@D)
	$(call say,text,$<)$(embed)
$(BUILD)/$(mine): $(BUILD)/obj/outside/$(mine).o $(BUILD)/obj/outside/$(mine).source.o $(PROGRAM) $(LIBRARY)
	$(link)
endif

# flags/program.h is not among the public headers: it prints and exits. Recipes take it from share/tune.c/program
# (recipe.mk) where tune.c is installed.
HEADERS  = $(filter-out $(if $(SWEEPS),,sweeps/%),$(shell sed '/^\#/d' components/headers.txt))
VERSION  = $(shell sed -n 's/.*TUNE_VERSION "\(.*\)"/\1/p' components/core/version.h)
DEST     = $(DESTDIR)$(abspath $(PREFIX))

# $(call pc,prefix,libdir,includedir)
pc = sed -e 's|@PREFIX@|$(1)|' -e 's|@LIBDIR@|$(2)|' -e 's|@INCLUDEDIR@|$(3)|' -e 's|@VERSION@|$(VERSION)|' \
     -e 's|@CJSON_CFLAGS@|$(strip $(CJSON_CFLAGS))|' -e 's|@LIBS@|$(strip $(LIBS))|' -e 's|@SWEEPS_LIBS@|$(strip $(SWEEPS_LIBS))|'

# The tree as it is, not installed: PKG_CONFIG_PATH=<tree>/build pkg-config --cflags --libs tune
$(addprefix $(BUILD)/,$(PKG_CONFIG)): $(BUILD)/%.pc: tools/%.pc.in components/core/version.h $(BUILD)/config.mk Makefile
	@$(call pc,$(CURDIR),$(abspath $(BUILD)),$${prefix}/components) $< > $@

# What is installed names no folder but by its own place: it may be moved.
install: all
	install -d "$(DEST)/bin" "$(DEST)/lib/pkgconfig" "$(DEST)/share/tune.c/tools"
	install $(RECIPES) $(TOOLS) $(MAKERS) "$(DEST)/bin"
	install -m 644 $(LIBRARY) $(if $(SWEEPS),$(SWEEPS_LIBRARY)) "$(DEST)/lib"
	$(if $(filter 0,$(CUDA)),,[ ! -e $(BUILD)/tune_cuda.so ] || install $(BUILD)/tune_cuda.so "$(DEST)/lib")
	$(if $(MPI),install $(BUILD)/tune_mpi.so "$(DEST)/lib")
	$(if $(NCCL),install $(BUILD)/tune_nccl.so "$(DEST)/lib")
	for p in $(PKG_CONFIG); do \
	    $(call pc,$${pcfiledir}/../..,$${prefix}/lib,$${prefix}/include/tune) tools/$$p.in > "$(DEST)/lib/pkgconfig/$$p"; \
	done
	for h in $(HEADERS); do install -D -m 644 components/$$h "$(DEST)/include/tune/$$h" || exit 1; done
	for f in $$(find defaults datasets/*.jsonl datasets/*.txt -type f); do \
	    case $$f in *.sh) mode=755 ;; *) mode=644 ;; esac; \
	    install -D -m $$mode $$f "$(DEST)/share/tune.c/$$f" || exit 1; \
	done
	install tools/download.sh "$(DEST)/share/tune.c/tools"
	install -D -m 644 components/flags/program.h "$(DEST)/share/tune.c/program/flags/program.h"
	install -m 644 $(PROGRAM) "$(DEST)/share/tune.c/program"
	install -D -m 644 -t "$(DEST)/share/tune.c/recipes" recipes/*.c
	install -m 644 tools/recipe.mk "$(DEST)/share/tune.c"
	install -D -m 644 LICENSE "$(DEST)/share/doc/tune.c/copyright"

# A source distribution of what is committed: build/tune.c-<version>.tar.gz.
dist:
	@git rev-parse --git-dir >/dev/null || { echo "make dist: this is no git clone"; exit 1; }
	@mkdir -p $(BUILD)
	@name=tune.c-$$(sed -n 's/.*TUNE_VERSION "\(.*\)"/\1/p' components/core/version.h); \
	git archive --format=tar.gz --prefix=$$name/ -o $(BUILD)/$$name.tar.gz HEAD && echo "$(BUILD)/$$name.tar.gz"

# What `make install` copies, as a tarball and a .deb in PACKAGES.
PACKAGES   ?= $(BUILD)
MAINTAINER ?= the tune.c authors <authors@tune.c.invalid>
package: all
	@rm -rf "$(PACKAGES)/package"
	@$(MAKE) --no-print-directory PREFIX=/usr DESTDIR="$(PACKAGES)/package" install >/dev/null
	@VERSION="$(VERSION)" CC="$(CC)" AR="$(AR)" OBJCOPY="$(OBJCOPY)" OBJDUMP="$(OBJDUMP)" MAINTAINER="$(MAINTAINER)" \
	    sh tools/package.sh "$(PACKAGES)/package" "$(PACKAGES)"

uninstall:
	rm -f $(addprefix "$(DEST)/bin"/,$(notdir $(RECIPES) $(TOOLS) $(MAKERS))) $(addprefix "$(DEST)/lib"/,libtune.a libtune_sweeps.a tune_cuda.so tune_mpi.so tune_nccl.so pkgconfig/tune.pc pkgconfig/tune_sweeps.pc)
	rm -rf "$(DEST)/include/tune" "$(DEST)/share/tune.c" "$(DEST)/share/doc/tune.c"

setup:
	@CC="$(CC)" sh tools/setup.sh
	@CC="$(CC)" sh tools/configure.sh $(BUILD)/config.mk

setup-test:
	@CC="$(CC)" sh tools/setup.sh test
	@CC="$(CC)" sh tools/configure.sh $(BUILD)/config.mk

test: setup-test
	@$(MAKE) --no-print-directory -j$$(nproc) all tests
	@BUILD=$(BUILD) sh tests/run.sh $(TESTS) $(TEST_SCRIPTS)

# The CUDA device, a library that --device cuda opens. Nothing else needs a CUDA Toolkit. With CUDA=0 no nvcc is looked for,
# nothing is built or installed for CUDA, and --device cuda says that this build is without it.
CUDA      ?= 1
NVCC      ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCH ?= 80 90a 100 120
CUDA_CODE  = $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$a,code=sm_$a) \
             -gencode arch=compute_$(lastword $(CUDA_ARCH)),code=compute_$(lastword $(CUDA_ARCH))
# What nvcc makes goes there. The archive of tests/gpu.sh has a folder of its own, for it is for other GPUs.
NVCC_BUILD ?= $(BUILD)
NVCCFLAGS  = -std=c++17 -O3 -lineinfo -Werror all-warnings -Xcompiler -fPIC,-Wall,-Wextra $(CUDA_CODE)
cuda:
ifeq ($(CUDA),0)
	@echo "# CUDA=0: tune_cuda.so is left out, and --device cuda with it"
else
	@if [ -n "$(NVCC)" ]; then $(MAKE) --no-print-directory -j$$(nproc) $(NVCC_BUILD)/tune_cuda.so; \
	    else echo "# no nvcc here: tune_cuda.so is left out, and --device cuda with it; NVCC=/path/to/nvcc names one"; fi
endif
# Only device.c differs. A file keeps the mode in which it was compiled.
DEVICE_OPENER = $(BUILD)/obj/components/devices/device.o
$(DEVICE_OPENER): CPPFLAGS += $(if $(filter 0,$(CUDA)),-DTUNE_WITHOUT_CUDA)
CUDA_MODE = $(BUILD)/obj/cuda-$(if $(filter 0,$(CUDA)),off,on).mode
$(DEVICE_OPENER): $(CUDA_MODE)
$(CUDA_MODE):
	@mkdir -p $(@D) && rm -f $(BUILD)/obj/cuda-*.mode && touch $@
$(NVCC_BUILD)/obj/nvcc/%.o: %.cu
	@mkdir -p $(@D)
	$(call say,nvcc,$<)$(NVCC) -MMD -MP -Icomponents $(NVCCFLAGS) -c $< -o $@
$(NVCC_BUILD)/tune_cuda.so: $(patsubst %.cu,$(NVCC_BUILD)/obj/nvcc/%.o,$(wildcard components/devices/cuda/*.cu))
	$(call say,link,$@)$(NVCC) -shared -cudart static $(CUDA_CODE) $^ -lcublasLt \
	    -Xlinker -soname,tune_cuda.so -Xlinker -rpath,$(patsubst %/bin/,%/lib64,$(dir $(realpath $(NVCC)))) -o $@

# Ranks by MPI, a library that programs open. Nothing else needs MPI.
mpi:
	@if [ -n "$(MPI)" ]; then $(MAKE) --no-print-directory $(BUILD)/tune_mpi.so; \
	    else echo "# no MPI here: tune_mpi.so is left out, and ranks on CPUs with it (Debian: apt-get install libopenmpi-dev openmpi-bin)"; fi
$(BUILD)/obj/components/comm/mpi/%.o: CPPFLAGS += $(MPI_CFLAGS)
$(BUILD)/tune_mpi.so: $(BUILD)/obj/components/comm/mpi/mpi.o
	$(call say,link,$@)$(CC) -shared $(SAN) $^ $(MPI_LIBS) -o $@

# Arrays of GPUs by NCCL, a library that programs open. Nothing else needs NCCL.
nccl:
	@if [ -n "$(NCCL)" ]; then $(MAKE) --no-print-directory $(BUILD)/tune_nccl.so; \
	    else echo "# no NCCL here: tune_nccl.so is left out; the gradients of GPUs go through host memory (python3 -m pip install nvidia-nccl-cu13)"; fi
$(BUILD)/obj/components/comm/nccl/%.o: CPPFLAGS += $(NCCL_CFLAGS)
$(BUILD)/tune_nccl.so: $(BUILD)/obj/components/comm/nccl/nccl.o
	$(call say,link,$@)$(CC) -shared $(SAN) $^ $(NCCL_LIBS) -o $@

# What tests/gpu.sh runs on a machine with a GPU. The tests of operations are those of tests/cuda_on_cpu, for a real GPU.
GPU_TESTS    = $(addprefix $(NVCC_BUILD)/tests/gpu/test_,operations products attention norms updates device)
gpu:
	@[ -n "$(if $(filter 0,$(CUDA)),,$(NVCC))" ] || { echo "make gpu: no nvcc here, or CUDA=0; NVCC=/path/to/nvcc names one"; exit 1; }
	@$(MAKE) --no-print-directory -j$$(nproc) gpu-programs
gpu-programs: $(RECIPES) $(addprefix $(BUILD)/,init_model make_tales) $(BUILD)/tests/bench/bench_gpu $(NVCC_BUILD)/tune_cuda.so $(GPU_TESTS) \
    $(BUILD)/tests/helpers/gpu_ranks $(if $(NCCL),$(BUILD)/tune_nccl.so) $(if $(MPI),$(BUILD)/tune_mpi.so)
$(NVCC_BUILD)/obj/nvcc/tests/%.o: NVCCFLAGS := $(filter-out -lineinfo -Werror all-warnings,$(NVCCFLAGS)) -Itests
# Behind tune_cuda.so, so that the linker takes those members of the library whose functions it calls.
$(GPU_TESTS): $(NVCC_BUILD)/tests/gpu/%: $(NVCC_BUILD)/obj/nvcc/tests/cuda_on_cpu/%.o $(NVCC_BUILD)/tune_cuda.so $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,link,$@)$(NVCC) -cudart static $(CUDA_CODE) $(filter %.o,$^) $(NVCC_BUILD)/tune_cuda.so -Xlinker -rpath,'$$ORIGIN/../..' \
	    -Xlinker --export-dynamic,$(LIBRARY),--allow-shlib-undefined \
	    $(OPENBLAS_LIBS) $(CJSON_LIBS) -Xcompiler -fopenmp -ldl -lpthread -lm -o $@

# The kernels as nvcc compiled them: registers, spills, shared memory, tensor-core instructions against the bounds in
# tests/cuda_compiled.txt. Needs no GPU. Without nvcc it installs one from PyPI (see tests/cuda_compiled.sh).
test-cuda-compiled: setup-test
	@export CUDA=$(CUDA) BUILD=$(BUILD) NVCC="$(if $(filter 0,$(CUDA)),,$(NVCC))" TUNE_TEST_TIMEOUT=$${TUNE_TEST_TIMEOUT:-2400}; \
	    sh tests/run.sh tests/cuda_compiled.sh; compiled=$$?; \
	    sh tests/run.sh tests/gpu_pack.sh && [ $$compiled = 0 ]

# CUDA on the CPU (docs/cuda-on-cpu.md): the kernels and the tests of tests/cuda_on_cpu, built as C++ by each compiler that
# is here. Needs no CUDA. The cuda-tests of one compiler: make CUDA_CXX=g++ cuda-tests
test-cuda: setup-test
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@for c in g++ clang++; do ! command -v $$c >/dev/null 2>&1 || \
	    $(MAKE) --no-print-directory -j$$(nproc) CUDA_CXX=$$c cuda-tests || exit 1; done
	@BUILD=$(BUILD) sh tests/run.sh tests/cuda_on_cpu/test_*.sh $(BUILD)/cuda_on_cpu/test_*

# A training step on an H200, or another GPU that cuda_paper.cu knows, on paper: make cuda-paper GPU=h100
PAPER_CXX = $(notdir $(firstword $(shell command -v g++ clang++ 2>/dev/null)))
cuda-paper: setup-test
	@$(MAKE) --no-print-directory -j$$(nproc) CUDA_CXX=$(PAPER_CXX) cuda-paper-program >&2
	@TUNE_DEFAULTS=$(CURDIR)/defaults $(BUILD)/cuda_on_cpu/cuda_paper.$(PAPER_CXX) tests/cuda_compiled.txt $(GPU:%=--gpu %)

ifdef CUDA_CXX
CUDA_OBJ      = $(BUILD)/obj/$(CUDA_CXX)
CUDA_EMULATOR = $(patsubst %.cc,$(CUDA_OBJ)/%.o,$(wildcard tests/cuda_on_cpu/*.cc))
CUDA_KERNELS  = $(patsubst %.cu,$(CUDA_OBJ)/%.o,$(wildcard components/devices/cuda/*.cu))
CUDA_TESTS    = $(patsubst tests/cuda_on_cpu/%.cu,$(BUILD)/cuda_on_cpu/%.$(CUDA_CXX),$(wildcard tests/cuda_on_cpu/test_*.cu))
# A product and a sum are rounded apart. Variables that nobody set hold a pattern.
CUDA_CXXFLAGS = -O2 -g -std=c++17 -Wall -Wextra -ffp-contract=off -ftrivial-auto-var-init=pattern -ffile-prefix-map=$(CURDIR)=.
# The switch between fibers that other processors take.
CUDA_OTHER    = $(BUILD)/cuda_on_cpu/test_blocks_ucontext.$(CUDA_CXX)
# The recipes, with the emulated device in the program.
CUDA_RECIPES  = $(patsubst $(BUILD)/%,$(BUILD)/cuda_on_cpu/$(CUDA_CXX)/%,$(RECIPES))
# The bench of GPUs likewise, to try it out; and what a step should take on a GPU, on paper: the model queues it, the emulator
# counts the launches.
CUDA_BENCH    = $(BUILD)/cuda_on_cpu/$(CUDA_CXX)/bench_gpu
CUDA_PAPER    = $(BUILD)/cuda_on_cpu/cuda_paper.$(CUDA_CXX)
# Ranks with emulated GPUs: NCCL's part as it is, with the emulator's nccl.h.
CUDA_NCCL     = $(BUILD)/cuda_on_cpu/$(CUDA_CXX)/tune_nccl.so
CUDA_RANKS    = $(BUILD)/cuda_on_cpu/$(CUDA_CXX)/gpu_ranks
cuda-tests: $(CUDA_TESTS) $(CUDA_OTHER) $(CUDA_RECIPES) $(CUDA_BENCH) $(CUDA_PAPER) $(CUDA_RANKS) $(CUDA_NCCL)
$(CUDA_RANKS): $(BUILD)/obj/tests/helpers/gpu_ranks.o
$(CUDA_OBJ)/components/comm/nccl/nccl.o: components/comm/nccl/nccl.c $(BUILD)/config.mk
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(CPPFLAGS) -Itests/cuda_on_cpu $(CFLAGS) -c $< -o $@
$(CUDA_NCCL): $(CUDA_OBJ)/components/comm/nccl/nccl.o
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) -shared $(SAN) $^ -o $@
cuda-paper-program: $(CUDA_PAPER)
$(CUDA_BENCH): $(BUILD)/obj/tests/bench/bench_gpu.o
$(CUDA_PAPER): $(CUDA_OBJ)/tests/cuda_on_cpu/cuda_paper.o
$(CUDA_BENCH) $(CUDA_PAPER) $(CUDA_RANKS): $(CUDA_KERNELS) $(CUDA_EMULATOR) $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CUDA_CXX) $(LDFLAGS) $(filter %.o,$^) $(LIBRARY) $(LIBS) -fopenmp -o $@
$(CUDA_RECIPES): $(BUILD)/cuda_on_cpu/$(CUDA_CXX)/%: $(BUILD)/obj/recipes/%.o $(BUILD)/obj/recipes/%.source.o $(PROGRAM) \
    $(CUDA_KERNELS) $(CUDA_EMULATOR) $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CUDA_CXX) $(LDFLAGS) $(filter %.o,$^) $(LIBRARY) $(LIBS) -fopenmp -o $@
$(CUDA_OBJ)/%.o: %.cc
	@mkdir -p $(@D)
	$(call say,c++,$<)$(CUDA_CXX) -MMD -MP -Itests/cuda_on_cpu -Icomponents $(CUDA_CXXFLAGS) -c $< -o $@
$(CUDA_OBJ)/%.o: %.cu
	@mkdir -p $(@D)
	$(call say,c++,$<)$(CUDA_CXX) -MMD -MP -Itests/cuda_on_cpu -Icomponents -Itests $(CUDA_CXXFLAGS) -x c++ -c $< -o $@
$(CUDA_OTHER): tests/cuda_on_cpu/fibers.cc $(BUILD)/cuda_on_cpu/test_blocks.$(CUDA_CXX)
	$(call say,c++,$@)$(CUDA_CXX) -Itests/cuda_on_cpu $(CUDA_CXXFLAGS) -DCUDA_ON_CPU_UCONTEXT $< \
	    $(CUDA_OBJ)/tests/cuda_on_cpu/test_blocks.o $(filter-out %/fibers.o,$(CUDA_EMULATOR)) -o $@
$(CUDA_TESTS): $(BUILD)/cuda_on_cpu/%.$(CUDA_CXX): $(CUDA_OBJ)/tests/cuda_on_cpu/%.o $(CUDA_KERNELS) $(CUDA_EMULATOR) $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CUDA_CXX) $(CUDA_CXXFLAGS) $(LDFLAGS) $(filter %.o,$^) $(LIBRARY) $(LIBS) -o $@
endif

# Live comparison with the field's own libraries, in a Python environment outside this tree (see tests/peers.sh).
test-peers: setup-test
	@$(MAKE) --no-print-directory -j$$(nproc) all $(HELPERS) $(PEER_PROGRAMS)
	@BUILD=$(BUILD) sh tests/peers.sh

# Task files beside lm-evaluation-harness.
test-lm-eval: setup-test
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@BUILD=$(BUILD) sh tests/peers.sh lm-eval

# The studio's page in a real browser (see tests/studio/browser.sh).
test-browser: setup-test
	@sh tools/setup.sh browser || echo "# without a browser this is skipped"
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@BUILD=$(BUILD) sh tests/run.sh tests/studio/browser.sh

# A run that is killed, stopped, out of disk, at every moment there is (see tests/faults.sh); ranks of which one is (tests/faults_ranks.sh).
faults: setup-test
	@$(MAKE) --no-print-directory -j$$(nproc) all $(BUILD)/tests/comm/test_drawn $(BUILD)/tests/helpers/ranks
	@BUILD=$(BUILD) sh tests/run.sh tests/faults.sh tests/faults_sweep.sh tests/faults_ranks.sh

# Sweeps over a real Slurm of four nodes, over ssh and in a container, on this machine (see tests/slurm/slurm_cluster.sh). As root.
test-slurm: setup-test
	@sh tools/setup.sh slurm || echo "# without Slurm this is skipped"
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@BUILD=$(BUILD) sh tests/run.sh tests/slurm/slurm.sh tests/slurm/slurm_kills.sh tests/slurm/slurm_wrong.sh \
	    tests/slurm/slurm_ended.sh tests/slurm/slurm_requeue.sh tests/slurm/slurm_ranks.sh tests/slurm/sweep_ssh.sh tests/slurm/sweep_container.sh

# Small faults, one at a time: whether the tests notice each (see tests/mutants/mutants.sh). MUTANTS: words that choose some.
mutants: setup-test
	@sh tests/run.sh tests/mutants/test_lists.sh && sh tests/mutants/mutants.sh $(MUTANTS)

# Whether the recipes teach: a model from random weights, tuned four ways (see tests/proof.sh). PROOF: its folder, --small.
proof: setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@BUILD=$(BUILD) sh tests/proof.sh $(PROOF)

# Time figures; nothing here passes or fails.
bench: setup
	@$(MAKE) --no-print-directory -j$$(nproc) all $(BENCHES) $(HELPERS)
	@export TUNE_DEFAULTS=$${TUNE_DEFAULTS:-$(CURDIR)/defaults} BUILD=$(BUILD); \
	for b in $(BENCHES); do echo "== $$(basename $$b)"; $$b || exit 1; done; \
	for b in tests/bench/bench_*.sh; do echo "== $$(basename $$b)"; sh $$b || exit 1; done

# The same work by the field's libraries, in the environment of test-peers, which is made if it is not there: the table of training.
# PEERS: "table --quick" and its other options; generate; tokenizers; llama; tasks, beside lm-evaluation-harness.
PEERS = table
bench-peers: setup-test
	@$(MAKE) --no-print-directory -j$$(nproc) all $(BENCHES) $(HELPERS)
	@BUILD=$(BUILD) sh tests/peers.sh $(if $(filter llama,$(PEERS)),llama,$(if $(filter tasks,$(PEERS)),lm-eval,python)) python tests/bench/peer_$(firstword $(PEERS)).py $(wordlist 2,99,$(PEERS))

# Everything from nothing: set-up, build, a model, a training, its result.
quickstart: setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@BUILD=$(BUILD) sh tools/quickstart.sh

# Built with AddressSanitizer (leaks too) and UndefinedBehaviorSanitizer, which end the program at the first error.
ASAN_SAN = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-pass-failed
asan:
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD)/asan OPT=-O1 SETS_OPT=-O2 SAN="$(ASAN_SAN)" all tests

# Every test on that build, but those of the sources, the pages and CI, and those of the shell or of programs that they compile
# themselves: for these all builds are the same.
ASAN_SAME = $(addprefix tests/tree/test_,layers.sh docs.sh package.sh ci_stages.sh installed.sh) tests/mutants/test_lists.sh \
            tests/datasets/test_download.sh tests/recipes/test_edit_a_recipe.sh tests/recipes/test_edits.sh tests/losses/test_own_losses.sh
ASAN_SCRIPTS = $(filter-out $(ASAN_SAME),$(TEST_SCRIPTS))
test-asan: setup-test asan
	@BUILD=$(BUILD)/asan sh tests/run.sh $(TESTS:$(BUILD)/%=$(BUILD)/asan/%) $(ASAN_SCRIPTS)

# A tiny model under valgrind, on a build without the instructions that valgrind lacks.
test-valgrind: setup-test
	@sh tools/setup.sh valgrind || echo "# without valgrind this is skipped"
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD)/valgrind OPT=-O1 all
	@BUILD=$(BUILD)/valgrind sh tests/run.sh tests/valgrind.sh

# The unit tests as an aarch64 machine runs them, emulated (see tests/aarch64.sh). Its libraries lie in a folder of their own.
AARCH64_ROOT ?= $(HOME)/.cache/tune.c/aarch64
AARCH64_LIB   = $(AARCH64_ROOT)/usr/lib/aarch64-linux-gnu
test-aarch64:
	@sh tools/setup.sh aarch64 && sh tools/aarch64.sh $(AARCH64_ROOT) || echo "# without them this is skipped"
	@[ ! -e $(AARCH64_ROOT)/packages ] || ! command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 || \
	    PKG_CONFIG_LIBDIR=$(AARCH64_LIB)/pkgconfig:$(AARCH64_LIB)/openblas-pthread/pkgconfig PKG_CONFIG_SYSROOT_DIR=$(AARCH64_ROOT) \
	    $(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD)/aarch64 EXTRA_CFLAGS="$(EXTRA_CFLAGS) -Werror" CC="aarch64-linux-gnu-gcc --sysroot=$(AARCH64_ROOT)" \
	    AR=aarch64-linux-gnu-ar OBJCOPY=aarch64-linux-gnu-objcopy aarch64-tests
	@AARCH64_ROOT=$(AARCH64_ROOT) BUILD=$(BUILD)/aarch64 OBJCOPY=aarch64-linux-gnu-objcopy sh tests/aarch64.sh
aarch64-tests: $(RECIPES) $(TESTS)

tests: $(TESTS) $(HELPERS) $(FUZZERS)

fuzzers: $(FUZZERS)

# libFuzzer over every target, FUZZ_SECONDS each. The devices' sources are left out: no target needs them, and they ask
# for an OpenMP library that clang comes without. Templates have a tenth of their steps: an input that takes all of them is
# rendered nine times, with sanitizers, well within the 20 s that a target has for one.
FUZZ_SECONDS ?= 60
FUZZ_SAN = -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer \
           -fsanitize-coverage-ignorelist=tests/fuzz/uncounted.txt
fuzz:
	@CC=clang sh tools/setup.sh fuzz || echo "# fuzzing needs clang and its run-time library"
	@! echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null || \
	    $(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD)/fuzz CC=clang OPT=-O2 OPENMP= REPLAY= SAN="$(FUZZ_SAN)" \
	    EXTRA_CFLAGS="-Wno-unknown-pragmas -DTUNE_JINJA_STEPS=2000000" EXTRA_LDFLAGS=-fsanitize=fuzzer \
	    SOURCES="$(filter-out components/devices/%,$(SOURCES))" fuzzers
	@FUZZ_SECONDS=$(FUZZ_SECONDS) BUILD=$(BUILD)/fuzz sh tests/fuzz.sh

clean:
	rm -rf $(BUILD)

help:
	@cat tools/make_help.txt
	@[ ! -e $(BUILD)/config.mk.found ] || { echo; echo "On this machine:"; cat $(BUILD)/config.mk.found; }

-include $(shell find $(sort $(BUILD)/obj $(NVCC_BUILD)/obj) -name '*.d' 2>/dev/null)
.PHONY: all cuda mpi nccl quickstart found install dist package uninstall setup setup-test test test-cuda test-cuda-compiled gpu gpu-programs cuda-tests cuda-paper cuda-paper-program test-peers test-lm-eval test-browser faults test-slurm mutants proof bench bench-peers tests fuzz fuzzers asan test-asan test-valgrind test-aarch64 aarch64-tests clean help
