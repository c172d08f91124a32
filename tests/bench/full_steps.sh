# full_steps.sh - what the benches of training steps share. Sourced from the tree's root.
# full_rows FILE - rows of more than 512 tokens: every micro-batch is full.
full_rows() {
    awk '{ sub(/^\{"text": "/, ""); sub(/"\}$/, ""); row = row " " $0
        if (NR % 12 == 0) { print "{\"text\": \"" row "\"}"; row = "" } }' datasets/stories.jsonl >"$1"
}
# steps_of RUN FROM - number, seconds and tokens of each step from that one on. (The first takes its memory for the first time.)
steps_of() {
    sed -n 's/.*"step":\([0-9]*\),.*"step_s":\([0-9.e-]*\),.*"tokens":\([0-9]*\).*/\1 \2 \3/p' "$1/metrics.jsonl" | awk -v from="$2" '$1 >= from'
}
