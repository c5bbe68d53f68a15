/* gramvec.native.loops.jaro_winkler: how alike short texts are.
 *
 * A part of module.c, whose buffers it takes. gramvec/jobs/pairs/jaro.py is the same, slowly, and explains it. */

enum { MAX_JARO = 64, MAX_PREFIX = 4 };

/* Which letters are common depends on whose come first: the shorter text's, or those that are lower. */
static int comes_after(const uint32_t *one, int n, const uint32_t *other, int m) {
    if (n != m) return n > m;
    for (int i = 0; i < n; i++)
        if (one[i] != other[i]) return one[i] > other[i];
    return 0;
}

static double jaro_winkler_of(const uint32_t *one, int n, const uint32_t *other, int m) {
    if (n == 0 || m == 0) return n == m;
    if (comes_after(one, n, other, m)) {
        const uint32_t *swap = one;
        int count = n;
        one = other, n = m, other = swap, m = count;
    }
    int window = (n > m ? n : m) / 2 - 1, common = 0, swapped = 0, prefix = 0;
    if (window < 0) window = 0;
    uint64_t taken = 0;
    uint32_t matched[MAX_JARO];
    for (int i = 0; i < n; i++) {
        int first = i > window ? i - window : 0, last = i + window < m - 1 ? i + window : m - 1;
        for (int j = first; j <= last; j++)
            if (one[i] == other[j] && !(taken >> j & 1)) {
                taken |= (uint64_t)1 << j;
                matched[common++] = one[i];
                break;
            }
    }
    if (common == 0) return 0;
    for (int j = 0, at = 0; j < m; j++)
        if (taken >> j & 1) swapped += matched[at++] != other[j];
    double share = common;
    double found = (share / n + share / m + (share - swapped / 2) / share) / 3;
    if (found <= 0.7) return found;
    while (prefix < n && prefix < m && prefix < MAX_PREFIX && one[prefix] == other[prefix]) prefix++;
    return found + prefix * 0.1 * (1 - found);
}

typedef struct {
    const uint32_t *characters;
    const int32_t *starts;
    Py_ssize_t n_characters, n_starts;
} JaroTexts;

static int hold_jaro(Buffers *buffers, PyObject *given, JaroTexts *texts) {
    PyObject *characters, *starts;
    if (!PyArg_ParseTuple(given, "OO", &characters, &starts)) return 0;
    if (!(texts->characters = hold(buffers, characters, 4, &texts->n_characters, 0))) return 0;
    if (!(texts->starts = hold(buffers, starts, 4, &texts->n_starts, 0))) return 0;
    return 1;
}

/* The number of a text's characters that are compared; -1 for no text. */
static int jaro_length(const JaroTexts *texts, int64_t at) {
    if (at < 0 || at >= texts->n_starts - 1) return -1;
    int32_t first = texts->starts[at], last = texts->starts[at + 1];
    if (first < 0 || first > last || last > texts->n_characters) return -1;
    return last - first < MAX_JARO ? last - first : MAX_JARO;
}

static PyObject *jaro_winkler(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given_lefts, *given_rights, *given_left, *given_right, *given_out, *result = NULL;
    Py_ssize_t pairs, n_right, n_out;
    JaroTexts lefts, rights;
    if (!PyArg_ParseTuple(args, "O!O!OOO", &PyTuple_Type, &given_lefts, &PyTuple_Type, &given_rights, &given_left,
                          &given_right, &given_out))
        return NULL;
    Buffers buffers = {.count = 0};
    if (!hold_jaro(&buffers, given_lefts, &lefts) || !hold_jaro(&buffers, given_rights, &rights)) goto done;
    const int64_t *left = hold(&buffers, given_left, 8, &pairs, 0);
    const int64_t *right = left ? hold(&buffers, given_right, 8, &n_right, 0) : NULL;
    float *out = right ? hold(&buffers, given_out, 4, &n_out, PyBUF_WRITABLE) : NULL;
    if (!out) goto done;
    int fine = n_right == pairs && n_out == pairs;
    PyThreadState *lock = give_lock(pairs);
    for (Py_ssize_t p = 0; fine && p < pairs; p++) {
        int n = jaro_length(&lefts, left[p]), m = jaro_length(&rights, right[p]);
        if (n < 0 || m < 0) {
            fine = 0;
            break;
        }
        out[p] = (float)jaro_winkler_of(lefts.characters + lefts.starts[left[p]], n,
                                        rights.characters + rights.starts[right[p]], m);
    }
    take_lock(lock);
    if (fine) result = Py_NewRef(Py_None);
    else PyErr_SetString(PyExc_ValueError, "texts and pairs do not fit together");
done:
    let_go(&buffers);
    return result;
}
