# recipe.mk - build a recipe of your own with an installed tune.c, in any folder (PREFIX: where that is installed).
#
#     cp PREFIX/share/tune.c/recipes/finetune_full.c mine.c
#     make -f PREFIX/share/tune.c/recipe.mk mine
#
# CC, CFLAGS and LDFLAGS are yours. The program carries its source, as recipes of the tree do.
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
SHARE  := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
CFLAGS ?= -O2 -g
TUNE    = PKG_CONFIG_PATH='$(SHARE)/../../lib/pkgconfig' pkg-config tune

%: %.c
	@printf '.section .rodata\n.global tune_recipe_source, tune_recipe_source_end, tune_recipe_defaults\ntune_recipe_source:\n.incbin "%s"\ntune_recipe_source_end:\n.byte 0\ntune_recipe_defaults:\n.asciz "%s"\n.section .note.GNU-stack,"",%%progbits\n' '$<' '$(SHARE)/defaults' \
	  | $(CC) -x assembler -c - -o $@.source.o
	@flags=$$($(TUNE) --cflags) && libs=$$($(TUNE) --libs) && set -x && \
	  $(CC) -std=gnu11 -Wall -Wextra $(CFLAGS) $$flags -I'$(SHARE)/program' $< $@.source.o '$(SHARE)/program/program.o' \
	  $(LDFLAGS) $$libs -o $@
	@rm -f $@.source.o

.DEFAULT_GOAL := usage
.PHONY: usage
usage:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' '$(SHARE)/recipe.mk'
