#!/bin/sh
# make test-cuda: the tests of the CUDA runtime, on a GPU, or on a machine without one over a stand-in for the CUDA
# runtime, in an environment of its own with onnxruntime-gpu. What cannot be had is said, and the tests are skipped.
#   sh tests/cuda.sh ENVIRONMENT STANDIN TRAINER [pytest's options]
# TRAINER is a Python with the trainer's packages, which that environment has not.
set -eu
env=$1 standin=$2 trainer=$3
shift 3

skip() {
    echo "test-cuda is skipped: $1" >&2
    exit 0
}

if nvidia-smi -L >/dev/null 2>&1; then
    wanted='.[gpu]'
else
    wanted='. onnxruntime-gpu'
    [ -f "$standin/build.sh" ] || skip "no GPU is here, and no stand-in for the CUDA runtime (make test-cuda STANDIN=FOLDER)"
    command -v gcc >/dev/null || skip "the stand-in at $standin wants gcc"
fi

stamp="$env/.installed"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || [ requirements/constraints.txt -nt "$stamp" ]; then
    test -x "$env/bin/python" || "${PYTHON:-python3}" -m venv "$env"
    # shellcheck disable=SC2086 # words
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt \
        -e $wanted httpx onnx hypothesis pytest pytest-timeout || skip "onnxruntime-gpu cannot be installed (is there a network?)"
    echo "$wanted" >"$stamp"
fi

GRAMVEC_CUDA_BUNDLES=$PWD/$env/bundles
export GRAMVEC_CUDA_BUNDLES
PYTHONPATH=tests:tests/runtime "$trainer" tests/cuda_bundles.py "$env/bundles"

if [ "$wanted" != '.[gpu]' ]; then
    mkdir -p "$env/standin"
    cp -f "$standin"/* "$env/standin"
    cd "$env/standin"
    sh build.sh
    # Of the driver and of cuRAND nothing is called: libraries that export what the wheel is linked with.
    for library in libcuda.so.1 libcurand.so.10; do
        gcc -w -O2 -shared -fPIC fake.c -o lib/$library -Wl,-soname,$library -Wl,--version-script=plain.map -lm
    done
    cd - >/dev/null
    : >"$env/standin/trace.txt"
    LD_LIBRARY_PATH=$PWD/$env/standin/lib FAKE_LOG=$PWD/$env/standin/trace.txt
    export LD_LIBRARY_PATH FAKE_LOG
fi
exec "$env/bin/python" -m pytest -m cuda tests/runtime/test_cuda.py "$@"
