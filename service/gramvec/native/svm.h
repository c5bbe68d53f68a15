/* gramvec.native.loops.learn_svm: see loops.pyi. A part of module.c, whose buffers it takes. */

enum { SVM_LANES = 16, /* labels at a time: a row of weights is a cache line */
       SVM_IDLE = 2,   /* passes without a step after which a row is left out, */
       SVM_EVERY = 5 }; /* but for every such pass */

typedef float SvmLanes[SVM_LANES];

typedef struct {
    const int32_t *starts, *columns; /* the rows, sparse */
    const float *values, *scales;    /* of a row: 1 / (its square + 1 + spread) */
    const int8_t *signs;             /* of a row's labels: 1, -1, or 0 for none */
    SvmLanes *duals, *weights;       /* the last row of weights is the intercept, whose value is 1 in every row */
    uint8_t *idle;
    int64_t n, d;
    float spread;
} Svm;

/* Step once at each row of an order; return the largest step. Lanes are apart from each other, so that a compiler may
 * take them together without changing a sum. */
FOR_EACH_CPU static float svm_pass(const Svm *svm, const int32_t *order, int every) {
    float largest = 0;
    for (int64_t at = 0; at < svm->n; at++) {
        int32_t row = order[at];
        if (!every && svm->idle[row] == SVM_IDLE) continue;
        SvmLanes sums, steps;
        float *intercepts = svm->weights[svm->d], *dual = svm->duals[row], most = 0, held = 0;
        const int8_t *sign = svm->signs + (int64_t)row * SVM_LANES;
        memcpy(sums, intercepts, sizeof sums);
        for (int32_t i = svm->starts[row]; i < svm->starts[row + 1]; i++) {
            const float *line = svm->weights[svm->columns[i]], value = svm->values[i];
            for (int lane = 0; lane < SVM_LANES; lane++) sums[lane] += value * line[lane];
        }
        for (int lane = 0; lane < SVM_LANES; lane++) {
            float gradient = (float)sign[lane] * sums[lane] - 1 + svm->spread * dual[lane];
            float after = dual[lane] - gradient * svm->scales[row];
            after = after > 0 && sign[lane] ? after : 0;
            steps[lane] = (after - dual[lane]) * (float)sign[lane];
            float size = steps[lane] < 0 ? -steps[lane] : steps[lane];
            most = size > most ? size : most;
            held = after > held ? after : held;
            dual[lane] = after;
        }
        if (most == 0) {
            svm->idle[row] = held > 0 ? 0 : svm->idle[row] < SVM_IDLE ? svm->idle[row] + 1 : SVM_IDLE;
            continue;
        }
        svm->idle[row] = 0;
        largest = most > largest ? most : largest;
        for (int lane = 0; lane < SVM_LANES; lane++) intercepts[lane] += steps[lane];
        for (int32_t i = svm->starts[row]; i < svm->starts[row + 1]; i++) {
            float *line = svm->weights[svm->columns[i]], value = svm->values[i];
            for (int lane = 0; lane < SVM_LANES; lane++) line[lane] += value * steps[lane];
        }
    }
    return largest;
}

static PyObject *learn_svm(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given[7], *result = NULL;
    Svm svm = {0};
    float tolerance;
    Py_ssize_t n_starts, n_columns, n_values, n_scales, n_orders, n_signs, n_weights;
    if (!PyArg_ParseTuple(args, "OOOOOOOff", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5], &given[6],
                          &svm.spread, &tolerance))
        return NULL;
    Buffers buffers = {.count = 0};
    const int32_t *orders = NULL;
    if (!(svm.starts = hold(&buffers, given[0], 4, &n_starts, 0)) ||
        !(svm.columns = hold(&buffers, given[1], 4, &n_columns, 0)) ||
        !(svm.values = hold(&buffers, given[2], 4, &n_values, 0)) ||
        !(svm.scales = hold(&buffers, given[3], 4, &n_scales, 0)) ||
        !(orders = hold(&buffers, given[4], 4, &n_orders, 0)) || !(svm.signs = hold(&buffers, given[5], 1, &n_signs, 0)) ||
        !(svm.weights = hold(&buffers, given[6], 4, &n_weights, PyBUF_WRITABLE)))
        goto done;
    svm.n = n_scales;
    svm.d = n_weights / SVM_LANES - 1;
    int fine = svm.n >= 1 && svm.n < INT32_MAX && svm.d >= 0 && n_weights % SVM_LANES == 0 && n_starts == svm.n + 1 &&
               n_columns == n_values && n_signs == svm.n * SVM_LANES && n_orders >= svm.n && n_orders % svm.n == 0;
    fine = fine && svm.starts[0] == 0 && svm.starts[svm.n] == n_columns;
    for (int64_t i = 0; fine && i < svm.n; i++) fine = svm.starts[i] <= svm.starts[i + 1];
    for (int64_t i = 0; fine && i < n_columns; i++) fine = svm.columns[i] >= 0 && svm.columns[i] < svm.d;
    for (int64_t i = 0; fine && i < n_orders; i++) fine = orders[i] >= 0 && orders[i] < svm.n;
    if (!fine) {
        PyErr_SetString(PyExc_ValueError, "the rows, orders, signs and weights do not fit together");
        goto done;
    }
    svm.duals = PyMem_RawCalloc((size_t)svm.n, sizeof *svm.duals);
    svm.idle = PyMem_RawCalloc((size_t)svm.n, 1);
    if (!svm.duals || !svm.idle) {
        PyErr_NoMemory();
        goto done;
    }
    PyThreadState *lock = give_lock(n_columns);
    Py_ssize_t pass = 0, passes = n_orders / svm.n;
    memset(svm.weights, 0, (size_t)n_weights * sizeof(float));
    while (pass < passes) {
        float largest = svm_pass(&svm, orders + pass * svm.n, pass % SVM_EVERY == 0);
        pass++;
        if (largest < tolerance) break;
    }
    take_lock(lock);
    result = PyLong_FromSsize_t(pass);
done:
    PyMem_RawFree(svm.duals);
    PyMem_RawFree(svm.idle);
    let_go(&buffers);
    return result;
}
