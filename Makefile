# tune.c - see `make help`
.DEFAULT_GOAL := all
BUILD  ?= build
CC     ?= cc
PREFIX ?= /usr/local
ARCH   ?= -march=native
OPT    ?= -O3
SAN    ?=
V      ?= 0

Q0 = @printf '  %-4s %s\n' '$(1)' '$(2)';
say = $(if $(filter 0,$(V)),$(call Q0,$(1),$(2)))

# What is installed: found once by tools/configure.sh (pkg-config, then compiling four lines), kept in $(BUILD)/config.mk.
# Every variable in it can be set by hand: make OPENBLAS_CFLAGS=-I/x OPENBLAS_LIBS="-L/x -lopenblas"
-include $(BUILD)/config.mk
$(BUILD)/config.mk: tools/configure.sh
	@mkdir -p $(BUILD)
	@CC="$(CC)" sh tools/configure.sh $@

CFLAGS   = $(OPT) $(ARCH) -g -std=c11 -Wall -Wextra -Werror=implicit-function-declaration -Werror=incompatible-pointer-types \
           -ffp-contract=fast -fno-math-errno -fopenmp -fPIC -ffile-prefix-map=$(CURDIR)=. $(SAN) $(EXTRA_CFLAGS)
CPPFLAGS = -D_GNU_SOURCE -Icomponents -MMD -MP $(CJSON_CFLAGS) $(EXTRA_CPPFLAGS)
LDFLAGS  = -Wl,--as-needed -Wl,--build-id $(SAN) $(EXTRA_LDFLAGS)
LIBS     = $(OPENBLAS_LIBS) $(CJSON_LIBS) -fopenmp -ldl -lpthread -lm

LIBRARY  = $(BUILD)/libtune.a
SOURCES  = $(filter-out components/flags/program.c,$(wildcard components/*/*.c components/*/*/*.c))
OBJECTS  = $(SOURCES:%.c=$(BUILD)/obj/%.o)
PROGRAM  = $(BUILD)/obj/components/flags/program.o
RECIPES  = $(patsubst recipes/%.c,$(BUILD)/%,$(wildcard recipes/*.c))
TOOLS    = $(patsubst tools/%.c,$(BUILD)/%,$(wildcard tools/*.c)) $(patsubst datasets/%.c,$(BUILD)/%,$(wildcard datasets/*.c))
PEERS    = $(patsubst tests/peers/%.c,$(BUILD)/tests/peers/%,$(wildcard tests/peers/*.c))
TESTS    = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))

all: found $(RECIPES) $(TOOLS) $(if $(RECIPE),$(BUILD)/$(basename $(notdir $(RECIPE))))

found: $(BUILD)/config.mk
	@cat $(BUILD)/config.mk.found

$(BUILD)/obj/%.o: %.c $(BUILD)/config.mk
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(CPPFLAGS) $(OPENBLAS_CFLAGS) $(CFLAGS) -c $< -o $@

$(LIBRARY): $(OBJECTS)
	@rm -f $@
	$(call say,ar,$@)$(AR) rcs $@ $(OBJECTS)

# A recipe carries its own source: the run folder keeps what really ran.
$(BUILD)/obj/%.source.o: %.c
	@mkdir -p $(@D)
	$(call say,text,$<)printf '.section .rodata\n.global tune_recipe_source, tune_recipe_source_end\ntune_recipe_source:\n.incbin "%s"\ntune_recipe_source_end:\n.byte 0\n.section .note.GNU-stack,"",%%progbits\n' '$<' \
	  | $(CC) -x assembler -c - -o $@

$(BUILD)/%: $(BUILD)/obj/recipes/%.o $(BUILD)/obj/recipes/%.source.o $(PROGRAM) $(LIBRARY)
	$(call say,link,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@

$(BUILD)/%: $(BUILD)/obj/tools/%.o $(PROGRAM) $(LIBRARY)
	$(call say,link,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@

$(BUILD)/%: $(BUILD)/obj/datasets/%.o $(PROGRAM) $(LIBRARY)
	$(call say,link,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(CMOCKA_LIBS) $(LIBS) -o $@

# make RECIPE=/elsewhere/mine.c builds $(BUILD)/mine from a file outside this tree.
ifdef RECIPE
mine := $(basename $(notdir $(RECIPE)))
$(BUILD)/obj/outside/$(mine).o: $(RECIPE) $(BUILD)/config.mk
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(BUILD)/obj/outside/$(mine).source.o: $(RECIPE)
	@mkdir -p $(@D)
	$(call say,text,$<)printf '.section .rodata\n.global tune_recipe_source, tune_recipe_source_end\ntune_recipe_source:\n.incbin "%s"\ntune_recipe_source_end:\n.byte 0\n.section .note.GNU-stack,"",%%progbits\n' '$<' \
	  | $(CC) -x assembler -c - -o $@
$(BUILD)/$(mine): $(BUILD)/obj/outside/$(mine).o $(BUILD)/obj/outside/$(mine).source.o $(PROGRAM) $(LIBRARY)
	$(call say,link,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
endif

setup:
	@CC="$(CC)" sh tools/setup.sh
	@CC="$(CC)" sh tools/configure.sh $(BUILD)/config.mk

test: setup
	@$(MAKE) --no-print-directory all $(TESTS)
	@BUILD=$(BUILD) sh tests/run.sh $(BUILD)/tests/test_* tests/test_*.sh

# Live comparison with the field's own libraries, in a Python environment outside this tree (see tests/peers.sh).
test-peers: setup
	@$(MAKE) --no-print-directory all $(PEERS)
	@BUILD=$(BUILD) sh tests/peers.sh

asan:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan OPT=-O1 SAN="-fsanitize=address,undefined -fno-omit-frame-pointer" all tests

tests: $(TESTS)

clean:
	rm -rf $(BUILD)

help:
	@cat tools/make_help.txt

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
.PHONY: all found setup test test-peers tests asan clean help
.SECONDARY:
