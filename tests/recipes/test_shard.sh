#!/bin/sh
# test_shard.sh - ranks that share out moments and averages (--shard optimizer): the figures of ranks that do not, memory, saves, resuming.
. tests/tap.sh
cd "$tmp" || exit 1
shard=optimizer shared_out='its part of the optimizer'
. "$here/tests/recipes/shards.sh"

# ---- memory ----
is "the plan of four ranks has a quarter of the moments (test_shard.c compares the bytes)" eval '
    train quarter finetune_full 4 $rows --max-steps 2 --verbose --shard optimizer && train whole finetune_full 4 $rows --max-steps 2 --verbose &&
    awk "BEGIN { w = $(part whole moments); q = $(part quarter moments); exit !(q > 0 && w > 3 * q) }"'

# ---- what is refused ----
refused "Muon, which needs whole matrices" 2 'with --shard a rank has parts of them' "$full" $rows --optimizer muon --ranks 2 --shard optimizer --output no
is "one rank has nothing to share out" train alone finetune_full 1 $rows --max-steps 2 --optimizer muon --shard optimizer
finish
