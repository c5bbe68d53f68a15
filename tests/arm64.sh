#!/bin/sh
# make test-arm: the wheel for Linux on ARM (64 bits), built, and the tests of the loops and of the library on it, on
# this machine by qemu's user mode. What cannot be had is said, and the tests are skipped.
#   sh tests/arm64.sh FOLDER PYTHON [pytest's options]
# FOLDER is where Debian's Python for arm64 and the wheels are unpacked (700 MB); nothing of them is installed. PYTHON is
# this machine's, whose vectors are compared with the other's.
# Debian 13: apt install debootstrap gcc-aarch64-linux-gnu qemu-user. In qemu 7.2, Debian 12's, ONNX Runtime crashes; 10.0 ran.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd) python=$2
shift 2
root=$folder/root site=$folder/site emulated=$folder/python wheel=$folder/wheel
qemu=${QEMU:-qemu-aarch64}

skip() {
    echo "test-arm is skipped: $1" >&2
    exit 0
}

command -v "$qemu" >/dev/null || skip "no $qemu (Debian: apt install qemu-user; or name one: QEMU=...)"
version=$("$qemu" --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
[ "${version:-0}" -ge 9 ] || skip "$qemu is of version ${version:-?}; ONNX Runtime wants a newer one (name it: QEMU=...)"
command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc (Debian: apt install gcc-aarch64-linux-gnu)"

# The packages are unpacked alone: no program of theirs is run but Python.
if [ ! -f "$root/.unpacked" ]; then
    command -v debootstrap >/dev/null || skip "no debootstrap (Debian: apt install debootstrap)"
    debootstrap --foreign --arch=arm64 --variant=minbase --include=python3.11,libpython3.11-dev,libstdc++6 \
        bookworm "$root" >"$folder/debootstrap.log" 2>&1 ||
        skip "debootstrap failed (as root, with a network?): $(tail -n 1 "$folder/debootstrap.log")"
    for package in "$root"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$root" 2>/dev/null; done
    touch "$root/.unpacked"
fi
# A process that Python starts of itself is emulated, too: it has this script for its name.
cat >"$emulated" <<END
#!/bin/sh
exec $(command -v "$qemu") -0 $emulated -L $root $root/usr/bin/python3.11 "\$@"
END
chmod +x "$emulated"

if [ ! -f "$site/.installed" ] || [ requirements/constraints.txt -nt "$site/.installed" ]; then
    rm -rf "$site"
    "$python" -m pip install --quiet --disable-pip-version-check --target "$site" -c requirements/constraints.txt \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
        --python-version 3.11 --implementation cp --only-binary=:all: \
        click fastapi fastapi-swagger hatchling httptools httpx hypothesis numpy onnxruntime orjson prometheus-client \
        pyarrow pydantic pytest pytest-timeout scipy setuptools threadpoolctl tqdm uvicorn uvloop ||
        skip "the wheels cannot be installed (is there a network?)"
    touch "$site/.installed"
fi

export PYTHONPATH="$site" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
rm -rf "$wheel"
# The compiler is this machine's own, a cross compiler: an emulated one would take minutes.
CFLAGS="-Wall -Wextra -isystem $root/usr/include/python3.11 -idirafter $root/usr/include" \
    "$emulated" -m hatchling build -t wheel -d "$wheel"
"$python" -m zipfile -e "$wheel"/gramvec-*-linux_aarch64.whl "$wheel/unpacked"
ls "$wheel/unpacked/gramvec/native"/loops.*-aarch64-linux-gnu.so

PYTHONPATH="$wheel/unpacked:$site:$PWD/tests:$PWD"
export PYTHONPATH
"$emulated" tests/arm64_vectors.py >"$folder/there.txt"
PYTHONPATH=$PWD/tests "$python" tests/arm64_vectors.py >"$folder/here.txt"
diff "$folder/here.txt" "$folder/there.txt" || { echo "the same texts have other vectors on arm64" >&2; exit 1; }
cat "$folder/there.txt"

# What trains needs torch, whose wheel for arm64 brings CUDA's libraries: its tests are not among these. Two are of what a
# checkout finds, and this is none.
exec "$emulated" -m pytest -p no:cacheprovider -o timeout=1200 --hypothesis-profile=ci \
    --deselect tests/bundle/test_bundle.py::test_finding_a_bundle \
    --deselect tests/bundle/test_bundle.py::test_the_variables_folders_come_first_then_models_then_the_checkouts \
    tests/features/test_loops.py tests/features/test_features.py tests/text/test_vocab.py tests/text/test_memo.py tests/text/test_compose.py \
    tests/embed/test_embedder.py tests/bundle/test_bundle.py tests/embed/test_precision.py "$@"
