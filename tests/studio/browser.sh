#!/bin/sh
# browser.sh - the studio's page in a real browser (tests/studio/browser.py): `make test-browser`. It makes tiny runs and a store,
# serves them, and goes through each view. Skipped, with the reason, without a browser or playwright.
#   TUNE_VENV_BROWSER  Python's environment, filled from tests/requirements-browser.txt (default ~/.cache/tune.c/venv-browser)
#   TUNE_BROWSER       the browser (default: chromium-headless-shell, chromium, ... of PATH)
# Screenshots go to $BUILD/browser/.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
. tests/venv.sh
unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX
export PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1
left_out() { skip "the page in a browser" "$1"; finish; }
[ -x "$BUILD/studio" ] || left_out "build/studio is not here: it needs libmicrohttpd and HDF5"
for name in "${TUNE_BROWSER:-}" chromium-headless-shell chromium chromium-browser google-chrome; do
    [ -z "$name" ] || ! command -v "$name" >/dev/null || break
    name=
done
TUNE_BROWSER=$(command -v "${name:-/none}")
[ -n "$TUNE_BROWSER" ] || left_out "no chromium (Debian: apt-get install chromium-headless-shell)"
export TUNE_BROWSER
venv=${TUNE_VENV_BROWSER:-${HOME:-/tmp}/.cache/tune.c/venv-browser} wanted=tests/requirements-browser.txt
make_venv "$venv" "$tmp/venv.log" || left_out "$why"
sed -n 's/^\([a-z].*==[^ ]*\).*/\1/p' $wanted | sort >"$tmp/wanted"
there() { "$venv/bin/python" -m pip freeze --disable-pip-version-check 2>/dev/null | sort | comm -13 - "$tmp/wanted" | grep -q . && return 1 || return 0; }
there || timeout 600 "$venv/bin/python" -m pip install -q --disable-pip-version-check -r $wanted >"$tmp/venv.log" 2>&1 ||
    left_out "pip cannot install $wanted: $(grep -i error "$tmp/venv.log" | tail -n 1 | cut -c1-200)"

# What is shown: three runs, one with a name that would be markup, and a space with measured, missing and failed points.
mkdir -p "$tmp/root" "$BUILD/browser" && ln -s "$here/datasets" "$tmp/root/datasets" && cd "$tmp/root" || exit 1
train() { # LR FOLDER [OPTION...]
    lr=$1 folder=$2
    shift 2
    "$BUILD/finetune_full" --model models/tiny --dataset datasets/stories.jsonl --limit 60 --train-split 0.9 --max-length 64 \
        --batch-size 4 --lr "$lr" --epochs 1 --eval-every 5 --log-every 1 --no-save --output "$folder" "$@"
}
make_data() {
    tiny models/tiny 1 && train 1e-3 runs/first && train 3e-3 runs/second &&
        train 1e-2 'runs/<img src=x onerror="alert(1)">' || return 1
    train 900 runs/wild --clip-norm 0 --epochs 3 && return 1 # it diverges
    sed 's/models.quickstart/models\/tiny/; s/64, 128/32, 64/; s/values: .1, 4./values: [1, 2]/' "$here/defaults/spaces/quickstart.yaml" >space.yaml
    # Rows of 32 tokens lose their answers: these points fail.
    printf 'model_name,number_gpus,model_max_length,batch_size\nmodels/tiny,0,32,1\nmodels/tiny,0,64,1\nmodels/tiny,0,64,2\n' >points.csv
    "$BUILD/sweep" space.yaml --store samples --points points.csv || [ $? = 1 ]
}
if ! make_data >"$tmp/data.log" 2>&1; then
    is "runs and a store are made" sh -c "tail -n 20 '$tmp/data.log'; false"
    finish
fi
TUNE_ROOT=$tmp/root TUNE_DEFAULTS="$here/defaults" "$venv/bin/python" "$here/tests/studio/browser.py"
