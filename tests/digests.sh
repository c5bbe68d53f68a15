#!/bin/sh
# Small runs of fit, distill and sif with fixed seeds, and digests of what they make: the table, and vectors of texts.
#   sh tests/digests.sh PYTHON DATA      a Python with gramvec-train, and a folder of training data
# Two versions that print the same lines train to the same bytes.
set -eu
python=$1 data=$2
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
head_of() { zcat "$data/$1" 2>/dev/null | head -n "$2" >"$3" || true; }
head_of tatoeba_pivot.groups.tsv.gz 3000 groups.tsv
head_of oewn_synonyms.pairs.tsv.gz 2000 pairs.tsv
head_of raw/tatoeba_en.txt.gz 4000 texts.txt
head_of freq/enwiki_vocab_min200.txt.gz 60000 freq.txt
head_of spelling_typos_rs.pairs.tsv.gz 3000 typos.pairs.tsv

cat >fit.toml <<'X'
[model]
name = "fit"
kind = "charagram-phrase"
license = "Apache-2.0"
dimension = 48
pooling = "sum"
activation = "tanh"
bias = true
[features]
orders = [2, 3]
[vocabulary]
min_count = 2
max_ngrams = 3000
[training]
batch = 64
mega_batch = 2
steps = 60
l2 = 1e-5
l2_center = "initial"
[[data]]
path = "groups.tsv"
[[data]]
path = "pairs.tsv"
cap = 500
[export]
precision = "int8"
X
sed -e 's/"fit"/"words"/; s/charagram-phrase/paragram-phrase/; s/orders = .*/orders = []\nwords = true/; s/"sum"/"mean"/' \
    -e 's/"tanh"/"linear"/; s/bias = true/bias = false/; s/max_ngrams = 3000/max_words = 2000/' fit.toml >words.toml
cat >sif.toml <<'X'
[model]
name = "sif"
kind = "sif"
license = "Apache-2.0"
dimension = 48
pooling = "mean"
activation = "linear"
bias = false
[features]
orders = []
words = true
unknown_words = "skip"
[sif]
run = "words"
frequencies = "freq.txt"
a = 3e-3
components = 1
sample = 3000
[[texts]]
path = "texts.txt"
[export]
precision = "int8"
X
cat >distill.toml <<X
[model]
name = "distill"
kind = "gramvec"
license = "Apache-2.0"
dimension = 48
pooling = "sum"
activation = "linear"
bias = false
[features]
orders = [2, 3, 4]
words = true
[vocabulary]
min_count = 2
max_ngrams = 4000
max_words = 1500
[distillation]
teacher = "$work/bundles/words"
batch = 128
rate = 1e-3
steps = 60
spans = 500
misspelt = 0.3
misspellings = ["typos.pairs.tsv"]
dropout = { 4 = 0.4 }
whitening = 0.3
seed = 7
[distillation.spelling]
words = "freq.txt"
count = 3000
groups = 16
[export]
precision = "int8"
scales = { word = 0.95, 2 = 0.9 }
memo_chunks = 500
memo_edges = 300
[[texts]]
path = "texts.txt"
max_characters = 170
[[texts]]
path = "freq.txt"
layout = "words"
cap = 2000
X

train() {
    "$python" -m gramvec_training.cli "$@" --out "runs/$name" --data . --device cpu >log 2>&1 &&
        "$python" -m gramvec_training.cli export "runs/$name" -o "bundles/$name" >>log 2>&1 || { cat log; exit 1; }
}
for name in fit words sif; do train fit $name.toml; done
name=distill
train distill distill.toml --cache cache
"$python" - <<'X'
import hashlib, pathlib, gramvec
texts = pathlib.Path("texts.txt").read_text().splitlines()[:2000]
digest = lambda data: hashlib.sha256(data).hexdigest()[:16]
for name in ("fit", "words", "sif", "distill"):
    bundle = pathlib.Path("bundles", name)
    vectors = gramvec.load(str(bundle), device="cpu").embed(texts)
    print(f"{name:8} table {digest((bundle / 'model.onnx.data').read_bytes())}  vectors {digest(vectors.tobytes())}")
X
