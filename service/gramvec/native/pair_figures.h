/* gramvec.native.loops.pair_figures and boosted_sums: what two rows have in common, and what trees make of it.
 *
 * A part of module.c, whose buffers it takes. gramvec/jobs/pairs/figures_in_python.py is the same, slowly, and explains it. */

enum { LETTERS, DIGITS, SYMBOLS, ZEROS };            /* kinds of tokens; ZEROS: several of them and nothing else */
enum { LONGEST_COMPARED = 64, MAX_LEFT = 24 };      /* characters, and tokens of one side that are compared softly */
enum { OF_EQUAL = 17, OF_TEXT = 20, OF_COLUMNS = 6, OF_EVIDENCE = 33, FIGURES = OF_TEXT + OF_COLUMNS + OF_EVIDENCE };
/* Levels of a column's two values, and kinds of columns: see columns.py. */
enum { CONTRADICTS, DIFFERENT, ALIKE, NEARLY, EQUAL_VALUE, COLUMN_LEVELS, MISSING = 254, BY_LETTERS = 255 };
enum { IDENTIFIER, NAME, PLACE, NUMBER, DATE, TEXT, COLUMN_KINDS };
#define NEAR_TOKEN 0.7
#define BEGINNING 0.85
#define INITIAL 0.75
#define SHORTENED 0.72
#define LOW_COLUMN 0.4
#define NEAR_VALUE 0.85
#define ALIKE_VALUE 0.65

typedef struct {
    const uint32_t *characters;
    const int32_t *starts; /* tokens + 1 */
    const int32_t *values; /* the token that a token is equal to: of digits, the one without zeros in front */
    const uint8_t *kinds;
    const float *weights;
    Py_ssize_t tokens, n_characters;
    double heaviest;
} Vocabulary;

typedef struct {
    const int64_t *bounds;  /* rows * columns + 1 */
    const int32_t *tokens;  /* in order of the text */
    const int32_t *sorted;  /* places in a column, by value */
    const int32_t *together; /* places in a row, by value */
    Py_ssize_t rows, n_tokens;
} TokenRows;

/* The tokens of a row, or of one of its columns. */
typedef struct {
    const int32_t *tokens, *order;
    Py_ssize_t count;
    const float *weights; /* of each token here; NULL for those of the vocabulary */
} Side;

static double weight_of(const Vocabulary *known, const Side *side, Py_ssize_t place) {
    return side->weights ? side->weights[place] : known->weights[side->tokens[place]];
}

/* What of one side was aligned. */
typedef struct {
    double weight, equal, soft, heaviest_left;
    int compared, left, numbers_left;
    Py_ssize_t letters[MAX_LEFT], digits[MAX_LEFT];
    int n_letters, n_digits, letters_lost, digits_lost;
} Aligned;

/* A character's places in a pattern of at most 64 of them. */
typedef struct {
    uint32_t character[2 * LONGEST_COMPARED];
    uint64_t places[2 * LONGEST_COMPARED];
} Pattern;

static uint64_t *place_of(Pattern *pattern, uint32_t character) {
    uint32_t at = (character * 0x9E3779B1u) >> 25;
    while (pattern->places[at] && pattern->character[at] != character) at = (at + 1) & (2 * LONGEST_COMPARED - 1);
    pattern->character[at] = character;
    return &pattern->places[at];
}

/* Optimal string alignment distance: insertions, deletions, other characters, neighbors swapped (Hyyro 2003). */
static int edits(Pattern *pattern, const uint32_t *one, int n, const uint32_t *other, int m) {
    if (n == 0 || m == 0) return n + m;
    memset(pattern->places, 0, sizeof pattern->places);
    for (int i = 0; i < n; i++) *place_of(pattern, one[i]) |= (uint64_t)1 << i;
    uint64_t positive = ~(uint64_t)0, negative = 0, diagonal = 0, before = 0, last = (uint64_t)1 << (n - 1);
    int distance = n;
    for (int j = 0; j < m; j++) {
        uint32_t at = (other[j] * 0x9E3779B1u) >> 25;
        while (pattern->places[at] && pattern->character[at] != other[j]) at = (at + 1) & (2 * LONGEST_COMPARED - 1);
        uint64_t equal = pattern->places[at];
        uint64_t swapped = (((~diagonal) & equal) << 1) & before;
        diagonal = ((((equal & positive) + positive) ^ positive) | equal | negative) | swapped;
        uint64_t up = negative | ~(diagonal | positive), down = diagonal & positive;
        distance += (up & last) != 0;
        distance -= (down & last) != 0;
        up = (up << 1) | 1;
        down <<= 1;
        positive = down | ~(diagonal | up);
        negative = up & diagonal;
        before = equal;
    }
    return distance;
}

static double ratio(Pattern *pattern, const uint32_t *one, int n, const uint32_t *other, int m) {
    int longer = n > m ? n : m;
    return longer == 0 ? 0.0 : 1.0 - (double)edits(pattern, one, n, other, m) / longer;
}

static double token_likeness(Pattern *pattern, const uint32_t *one, int n, const uint32_t *other, int m) {
    if (n > m) {
        const uint32_t *swap = one;
        int count = n;
        one = other, n = m, other = swap, m = count;
    }
    double found = 0;
    if (m <= LONGEST_COMPARED && (double)(m - n) <= (1 - NEAR_TOKEN) * m + 1e-9)
        found = ratio(pattern, one, n, other, m);
    if (one[0] != other[0]) return found;
    if (n == 1) return found > INITIAL ? found : INITIAL;
    int at = 0;
    for (int j = 0; j < m && at < n; j++) at += one[at] == other[j];
    if (at < n) return found;
    if (n >= 3 && memcmp(one, other, (size_t)n * sizeof *one) == 0) return found > BEGINNING ? found : BEGINNING;
    if (n <= 4 && m >= n + 2 && found < SHORTENED) return SHORTENED;
    return found;
}

static void set_left(const Vocabulary *known, const Side *side, Aligned *of, Py_ssize_t place) {
    int32_t token = side->tokens[place];
    int letters = known->kinds[token] != DIGITS && known->kinds[token] != ZEROS;
    Py_ssize_t *kept = letters ? of->letters : of->digits;
    int *count = letters ? &of->n_letters : &of->n_digits;
    if (*count < MAX_LEFT) {
        kept[(*count)++] = place;
        return;
    }
    *(letters ? &of->letters_lost : &of->digits_lost) = 1;
    int lightest = 0;
    for (int i = 1; i < MAX_LEFT; i++)
        if (weight_of(known, side, kept[i]) < weight_of(known, side, kept[lightest])) lightest = i;
    if (weight_of(known, side, kept[lightest]) < weight_of(known, side, place)) kept[lightest] = place;
}

static void count_token(const Vocabulary *known, const Side *side, Py_ssize_t place, Aligned *of, int equal) {
    double weight = weight_of(known, side, place);
    of->compared++;
    of->weight += weight;
    if (equal) {
        of->equal += weight;
        return;
    }
    of->left++;
    of->numbers_left += known->kinds[side->tokens[place]] == DIGITS;
    if (weight > of->heaviest_left) of->heaviest_left = weight;
}

static int by_place(const void *one, const void *other) {
    Py_ssize_t a = *(const Py_ssize_t *)one, b = *(const Py_ssize_t *)other;
    return (a > b) - (a < b);
}

/* Write the digits that are left in order of the text; return how many, -1 for too many. */
static int digits_of(const Vocabulary *known, const Side *side, Aligned *of, uint32_t *to) {
    if (of->digits_lost) return -1;
    qsort(of->digits, (size_t)of->n_digits, sizeof *of->digits, by_place);
    int size = 0;
    for (int i = 0; i < of->n_digits; i++) {
        int32_t token = side->tokens[of->digits[i]];
        for (int32_t c = known->starts[token]; c < known->starts[token + 1]; c++) {
            if (size == LONGEST_COMPARED) return -1;
            to[size++] = known->characters[c];
        }
    }
    return size;
}

static void take_back(const Vocabulary *known, const Side *side, Aligned *of) {
    for (int i = 0; i < of->n_digits; i++) {
        int32_t token = side->tokens[of->digits[i]];
        if (known->kinds[token] != DIGITS) continue;
        of->equal += weight_of(known, side, of->digits[i]);
        of->left--;
        of->numbers_left--;
    }
    of->n_digits = 0;
}

static void set_heaviest(const Vocabulary *known, const Side *side, Aligned *of, const uint8_t *taken) {
    /* Only where all that is left is at hand: else it stays what it was. */
    if (of->letters_lost || of->digits_lost) return;
    of->heaviest_left = 0;
    for (int i = 0; i < of->n_letters; i++) {
        double weight = weight_of(known, side, of->letters[i]);
        if (!taken[i] && weight > of->heaviest_left) of->heaviest_left = weight;
    }
    for (int i = 0; i < of->n_digits; i++) {
        int32_t token = side->tokens[of->digits[i]];
        double weight = weight_of(known, side, of->digits[i]);
        if (known->kinds[token] == DIGITS && weight > of->heaviest_left) of->heaviest_left = weight;
    }
}

typedef struct {
    Aligned one, other;
    int soft, common;
    double nearest_number; /* below 0: no two that differ */
    double commonest_pair; /* of two tokens that are alike the heavier one, the least of them; below 0: none */
} Alignment;

static void align_letters(const Vocabulary *known, const Side *a, const Side *b, Alignment *found, Pattern *pattern) {
    float near[MAX_LEFT][MAX_LEFT];
    uint8_t taken_a[MAX_LEFT] = {0}, taken_b[MAX_LEFT] = {0};
    Aligned *one = &found->one, *other = &found->other;
    for (int i = 0; i < one->n_letters; i++) {
        int32_t left = a->tokens[one->letters[i]];
        for (int j = 0; j < other->n_letters; j++) {
            int32_t right = b->tokens[other->letters[j]];
            near[i][j] = 0;
            if (known->kinds[left] != LETTERS || known->kinds[right] != LETTERS) continue;
            near[i][j] = (float)token_likeness(
                pattern, known->characters + known->starts[left], known->starts[left + 1] - known->starts[left],
                known->characters + known->starts[right], known->starts[right + 1] - known->starts[right]);
        }
    }
    for (;;) {
        float best = (float)NEAR_TOKEN - 1e-6f;
        int at = -1, with = -1;
        for (int i = 0; i < one->n_letters; i++)
            for (int j = 0; j < other->n_letters && !taken_a[i]; j++)
                if (!taken_b[j] && near[i][j] > best) best = near[i][j], at = i, with = j;
        if (at < 0) break;
        taken_a[at] = taken_b[with] = 1;
        double left = weight_of(known, a, one->letters[at]), right = weight_of(known, b, other->letters[with]);
        double heavier = left > right ? left : right;
        one->soft += (double)best * left;
        other->soft += (double)best * right;
        if (found->commonest_pair < 0 || heavier < found->commonest_pair) found->commonest_pair = heavier;
        one->left--;
        other->left--;
        found->soft++;
    }
    set_heaviest(known, a, one, taken_a);
    set_heaviest(known, b, other, taken_b);
}

static void align_numbers(const Vocabulary *known, const Side *a, const Side *b, Alignment *found, Pattern *pattern) {
    Aligned *one = &found->one, *other = &found->other;
    found->nearest_number = -1;
    if (!one->numbers_left || !other->numbers_left) return;
    uint32_t digits_a[LONGEST_COMPARED], digits_b[LONGEST_COMPARED];
    int n = digits_of(known, a, one, digits_a), m = digits_of(known, b, other, digits_b);
    if (n > 0 && n == m && memcmp(digits_a, digits_b, (size_t)n * sizeof *digits_a) == 0) {
        found->common++;
        take_back(known, a, one);
        take_back(known, b, other);
        return;
    }
    for (int i = 0; i < one->n_digits; i++) {
        int32_t left = a->tokens[one->digits[i]];
        int size = known->starts[left + 1] - known->starts[left];
        for (int j = 0; j < other->n_digits; j++) {
            int32_t right = b->tokens[other->digits[j]];
            int size_b = known->starts[right + 1] - known->starts[right];
            if (known->kinds[left] != DIGITS || known->kinds[right] != DIGITS || size > LONGEST_COMPARED ||
                size_b > LONGEST_COMPARED)
                continue;
            double near = ratio(pattern, known->characters + known->starts[left], size,
                                known->characters + known->starts[right], size_b);
            if (near > found->nearest_number) found->nearest_number = near;
        }
    }
}

/* Each token counts once, however often a text has it. */
static Py_ssize_t after(const Vocabulary *known, const Side *side, Py_ssize_t at) {
    int32_t value = known->values[side->tokens[side->order[at]]];
    while (++at < side->count && known->values[side->tokens[side->order[at]]] == value) {
    }
    return at;
}

static void clear(Aligned *of) {
    of->weight = of->equal = of->soft = of->heaviest_left = 0;
    of->compared = of->left = of->numbers_left = of->n_letters = of->n_digits = of->letters_lost = of->digits_lost = 0;
}

static void align(const Vocabulary *known, const Side *a, const Side *b, Alignment *found, Pattern *pattern) {
    Aligned *one = &found->one, *other = &found->other;
    clear(one);
    clear(other);
    found->soft = found->common = 0;
    found->commonest_pair = -1;
    Py_ssize_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        int32_t left = i < a->count ? a->tokens[a->order[i]] : -1, right = j < b->count ? b->tokens[b->order[j]] : -1;
        int64_t x = left < 0 ? INT64_MAX : known->values[left], y = right < 0 ? INT64_MAX : known->values[right];
        int zeros_a = left >= 0 && known->kinds[left] == ZEROS, zeros_b = right >= 0 && known->kinds[right] == ZEROS;
        if (x == y) {
            if (!zeros_a) {
                count_token(known, a, a->order[i], one, 1);
                count_token(known, b, b->order[j], other, 1);
                found->common += known->kinds[left] == DIGITS;
            }
            i = after(known, a, i), j = after(known, b, j);
        } else if (x < y) {
            if (!zeros_a) count_token(known, a, a->order[i], one, 0);
            set_left(known, a, one, a->order[i]);
            i = after(known, a, i);
        } else {
            if (!zeros_b) count_token(known, b, b->order[j], other, 0);
            set_left(known, b, other, b->order[j]);
            j = after(known, b, j);
        }
    }
    align_numbers(known, a, b, found, pattern);
    align_letters(known, a, b, found, pattern);
}

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

static double soft_share(const Alignment *found) {
    const Aligned *one = &found->one, *other = &found->other;
    return share(one->equal + one->soft + other->equal + other->soft, one->weight + other->weight);
}

/* Write the first characters of a row without what stands between tokens. */
static int joined(const Vocabulary *known, const Side *side, uint32_t *to) {
    int size = 0;
    for (Py_ssize_t i = 0; i < side->count; i++)
        for (int32_t c = known->starts[side->tokens[i]]; c < known->starts[side->tokens[i] + 1]; c++) {
            if (size == LONGEST_COMPARED) return size;
            to[size++] = known->characters[c];
        }
    return size;
}

static double alike(const Vocabulary *known, const Side *a, const Side *b, Pattern *pattern) {
    uint32_t one[LONGEST_COMPARED], other[LONGEST_COMPARED];
    int n = joined(known, a, one), m = joined(known, b, other);
    return ratio(pattern, one, n, other, m);
}

static int same_tokens(const Vocabulary *known, const Side *a, const Side *b) {
    if (a->count != b->count) return 0;
    for (Py_ssize_t i = 0; i < a->count; i++)
        if (known->values[a->tokens[i]] != known->values[b->tokens[i]]) return 0;
    return 1;
}

static double lower_of(double a, double b) { return a < b ? a : b; }
static double higher_of(double a, double b) { return a > b ? a : b; }

/* Tokens and places of a row without the columns that the other row lacks. */
typedef struct {
    int32_t *tokens, *order, *place;
} Scratch;

static Side shared_columns(const TokenRows *rows, const int64_t *bounds, const uint8_t *shared, Py_ssize_t columns,
                           Scratch *to) {
    Py_ssize_t count = 0, ordered = 0;
    for (Py_ssize_t c = 0; c < columns; c++)
        for (int64_t i = bounds[c]; i < bounds[c + 1]; i++) {
            to->place[i - bounds[0]] = shared[c] ? (int32_t)count : -1;
            if (shared[c]) to->tokens[count++] = rows->tokens[i];
        }
    for (int64_t i = bounds[0]; i < bounds[columns]; i++) {
        int32_t place = to->place[rows->together[i]];
        if (place >= 0) to->order[ordered++] = place;
    }
    return (Side){to->tokens, to->order, count, NULL};
}

static void text_figures(const Vocabulary *known, const Side *a, const Side *b, float *out, Pattern *pattern) {
    Alignment found;
    align(known, a, b, &found, pattern);
    const Aligned *one = &found.one, *other = &found.other;
    double lighter = lower_of(one->weight, other->weight);
    double mean = (one->equal + one->soft + other->equal + other->soft) / 2;
    double left = one->weight - one->equal - one->soft, right = other->weight - other->equal - other->soft;
    double equal_a = share(one->equal, one->weight), equal_b = share(other->equal, other->weight);
    out[0] = (float)soft_share(&found);
    out[1] = (float)lower_of(share(mean, lighter), 1);
    out[2] = (float)lower_of(equal_a, equal_b);
    out[3] = (float)higher_of(equal_a, equal_b);
    out[4] = (float)(lower_of(left, right) / known->heaviest);
    out[5] = (float)(higher_of(left, right) / known->heaviest);
    out[6] = (float)(lower_of(one->heaviest_left, other->heaviest_left) / known->heaviest);
    out[7] = (float)(higher_of(one->heaviest_left, other->heaviest_left) / known->heaviest);
    out[8] = (float)lower_of(one->left, other->left);
    out[9] = (float)higher_of(one->left, other->left);
    out[10] = (float)found.soft;
    out[11] = (float)lower_of(one->compared, other->compared);
    out[12] = (float)higher_of(one->compared, other->compared);
    out[13] = (float)found.common;
    out[14] = (float)lower_of(one->numbers_left, other->numbers_left);
    out[15] = (float)higher_of(one->numbers_left, other->numbers_left);
    out[16] = found.nearest_number < 0 ? NAN : (float)found.nearest_number;
    out[18] = (float)alike(known, a, b, pattern);
    out[19] = found.commonest_pair < 0 ? NAN : (float)(found.commonest_pair / known->heaviest);
}

static int is_token_row(const Vocabulary *known, const TokenRows *rows, int64_t row, Py_ssize_t columns) {
    if (row < 0 || row >= rows->rows) return 0;
    const int64_t *bounds = rows->bounds + row * columns;
    if (bounds[0] < 0 || bounds[columns] > rows->n_tokens) return 0;
    for (Py_ssize_t c = 0; c < columns; c++) {
        if (bounds[c] > bounds[c + 1]) return 0;
        for (int64_t i = bounds[c]; i < bounds[c + 1]; i++) {
            int32_t token = rows->tokens[i];
            if (token < 0 || token >= known->tokens || rows->sorted[i] < 0 || rows->sorted[i] >= bounds[c + 1] - bounds[c] ||
                rows->together[i] < 0 || rows->together[i] >= bounds[columns] - bounds[0] ||
                known->starts[token] < 0 || known->starts[token] >= known->starts[token + 1] ||
                known->starts[token + 1] > known->n_characters)
                return 0;
        }
    }
    return 1;
}

static Side side_of(const TokenRows *rows, int64_t first, int64_t last, const int32_t *order) {
    return (Side){rows->tokens + first, order + first, last - first, NULL};
}

/* What the columns of tables tell, see ColumnFacts of columns.py. */
typedef struct {
    const uint8_t *kinds;                /* columns */
    const int32_t *cells[2];             /* rows * columns of each table */
    const float *equal, *levels;         /* values; columns * COLUMN_LEVELS */
    const float *weights[2];             /* tokens of each table */
    const uint8_t *typed;                /* pairs * columns, NULL where letters decide all */
    double rows;
    Py_ssize_t values;
} Facts;

/* What a column's two values have in common. */
typedef struct {
    int level;
    double near, tells, lighter, heavier, common, commonest_pair;
    int left;
} Compared;

static int level_of(double near, int typed) {
    if (typed < COLUMN_LEVELS) return typed;
    return near >= NEAR_VALUE ? NEARLY : near >= ALIKE_VALUE ? ALIKE : DIFFERENT;
}

static Compared compare_values(const Vocabulary *known, const TokenRows *lefts, const TokenRows *rights, int64_t left,
                               int64_t right, Py_ssize_t columns, Py_ssize_t column, const Facts *facts, int typed,
                               Pattern *pattern) {
    const int64_t *a = lefts->bounds + left * columns + column, *b = rights->bounds + right * columns + column;
    Compared made = {.level = MISSING, .commonest_pair = -1};
    if (a[0] == a[1] || b[0] == b[1] || typed == MISSING) return made;
    Side one = side_of(lefts, a[0], a[1], lefts->sorted), other = side_of(rights, b[0], b[1], rights->sorted);
    one.weights = facts->weights[0] + a[0];
    other.weights = facts->weights[1] + b[0];
    int32_t value = facts->cells[0][left * columns + column];
    if (value == facts->cells[1][right * columns + column] && !(typed < EQUAL_VALUE)) {
        made.level = EQUAL_VALUE;
        made.near = 1;
        made.tells = value >= 0 && value < facts->values ? facts->equal[value] : 0;
        for (Py_ssize_t i = 0; i < one.count; i = after(known, &one, i))
            if (known->kinds[one.tokens[one.order[i]]] != ZEROS) made.common += weight_of(known, &one, one.order[i]);
        return made;
    }
    Alignment found;
    align(known, &one, &other, &found, pattern);
    double letters = alike(known, &one, &other, pattern), words = soft_share(&found);
    made.near = typed == EQUAL_VALUE ? 1 : higher_of(words, letters);
    made.level = level_of(made.near, typed);
    made.tells = facts->levels[column * COLUMN_LEVELS + made.level];
    made.lighter = lower_of(found.one.heaviest_left, found.other.heaviest_left);
    made.heavier = higher_of(found.one.heaviest_left, found.other.heaviest_left);
    made.common = (found.one.equal + found.one.soft + found.other.equal + found.other.soft) / 2;
    made.left = found.one.left + found.other.left;
    made.commonest_pair = found.commonest_pair;
    return made;
}

/* NaN, or the greatest or least that there was. */
static void keep_most(float *most, double value) {
    if (!(*most >= (float)value)) *most = (float)value;
}
static void keep_least(float *least, double value) {
    if (!(*least <= (float)value)) *least = (float)value;
}

enum { /* places of OF_EVIDENCE */
    AT_SUM, AT_SURPLUS, AT_MOST, AT_SECOND_MOST, AT_THIRD_MOST, AT_LEAST, AT_SECOND_LEAST, AT_EQUALS, AT_DIFFERENTS, AT_CONTRADICTIONS, AT_FILLED,
    AT_ID_MAX, AT_ID_MIN, AT_NAME_MAX, AT_NAME_MIN, AT_PLACE_SUM, AT_PLACE_MIN, AT_NUMBER_MAX, AT_NUMBER_MIN, AT_DATE_MAX, AT_DATE_MIN, AT_TEXT_MAX, AT_TEXT_MIN,
    AT_NAME_LIGHTER_MAX, AT_NAME_LIGHTER_MIN, AT_NAME_HEAVIER_MAX, AT_NAME_HEAVIER_MIN, AT_NAME_COMMON, AT_NAME_LEFT, AT_PLACE_LIGHTER_MAX,
    AT_COMMONEST_PAIR, AT_MISSING_COLUMNS, AT_NAMES
};

static void column_figures(const Vocabulary *known, const TokenRows *lefts, const TokenRows *rights, int64_t left,
                           int64_t right, Py_ssize_t columns, const Facts *facts, const uint8_t *typed, float *out,
                           Pattern *pattern) {
    for (int i = 0; i < OF_COLUMNS + OF_EVIDENCE; i++) out[i] = NAN;
    const int64_t *a = lefts->bounds + left * columns, *b = rights->bounds + right * columns;
    float *evidence = out + OF_COLUMNS;
    double sum = 0, least = 1, greatest = 0, told = 0, places = 0;
    double most[3] = {-INFINITY, -INFINITY, -INFINITY}, fewest[2] = {INFINITY, INFINITY};
    int both = 0, either = 0, equal = 0, low = 0, different = 0, contradicting = 0, names = 0;
    for (Py_ssize_t c = 0; c < columns; c++) {
        either += a[c + 1] > a[c] || b[c + 1] > b[c];
        Compared at = compare_values(known, lefts, rights, left, right, columns, c, facts, typed ? typed[c] : BY_LETTERS,
                                     pattern);
        if (at.level == MISSING) continue;
        both++;
        equal += at.level == EQUAL_VALUE;
        different += at.level <= DIFFERENT;
        contradicting += at.level == CONTRADICTS;
        sum += at.near;
        low += at.near < LOW_COLUMN;
        least = lower_of(least, at.near);
        greatest = higher_of(greatest, at.near);
        double tells = at.tells;
        told += tells;
        if (tells > most[0]) most[2] = most[1], most[1] = most[0], most[0] = tells;
        else if (tells > most[1]) most[2] = most[1], most[1] = tells;
        else if (tells > most[2]) most[2] = tells;
        if (tells < fewest[0]) fewest[1] = fewest[0], fewest[0] = tells;
        else if (tells < fewest[1]) fewest[1] = tells;
        switch (facts->kinds[c]) {
            case IDENTIFIER: keep_most(evidence + AT_ID_MAX, tells), keep_least(evidence + AT_ID_MIN, tells); break;
            case NUMBER: keep_most(evidence + AT_NUMBER_MAX, tells), keep_least(evidence + AT_NUMBER_MIN, tells); break;
            case DATE: keep_most(evidence + AT_DATE_MAX, tells), keep_least(evidence + AT_DATE_MIN, tells); break;
            case TEXT: keep_most(evidence + AT_TEXT_MAX, tells), keep_least(evidence + AT_TEXT_MIN, tells); break;
            case NAME: keep_most(evidence + AT_NAME_MAX, tells), keep_least(evidence + AT_NAME_MIN, tells); break;
            default:
                places += tells;
                evidence[AT_PLACE_SUM] = (float)places;
                keep_least(evidence + AT_PLACE_MIN, tells);
        }
        if (facts->kinds[c] == NAME || facts->kinds[c] == TEXT) {
            names++;
            keep_most(evidence + AT_NAME_LIGHTER_MAX, at.lighter), keep_least(evidence + AT_NAME_LIGHTER_MIN, at.lighter);
            keep_most(evidence + AT_NAME_HEAVIER_MAX, at.heavier), keep_least(evidence + AT_NAME_HEAVIER_MIN, at.heavier);
            keep_most(evidence + AT_NAME_COMMON, at.common);
            evidence[AT_NAME_LEFT] = (float)at.left + (evidence[AT_NAME_LEFT] != evidence[AT_NAME_LEFT] ? 0 : evidence[AT_NAME_LEFT]);
        } else if (facts->kinds[c] == PLACE) {
            keep_most(evidence + AT_PLACE_LIGHTER_MAX, at.lighter);
        }
        if (at.commonest_pair >= 0) keep_least(evidence + AT_COMMONEST_PAIR, at.commonest_pair);
    }
    if (columns > 1) {
        out[4] = (float)share(both, either);
        if (both) {
            out[0] = (float)(sum / both);
            out[1] = (float)least;
            out[2] = (float)greatest;
            out[3] = (float)equal / (float)both;
            out[5] = (float)low / (float)both;
        }
    }
    evidence[AT_FILLED] = (float)both;
    evidence[AT_MISSING_COLUMNS] = (float)(columns - both);
    evidence[AT_NAMES] = (float)names;
    if (!both) return;
    evidence[AT_SUM] = (float)told;
    evidence[AT_SURPLUS] = (float)(told - facts->rows);
    evidence[AT_MOST] = (float)most[0];
    if (both > 1) evidence[AT_SECOND_MOST] = (float)most[1];
    if (both > 2) evidence[AT_THIRD_MOST] = (float)most[2];
    evidence[AT_LEAST] = (float)fewest[0];
    if (both > 1) evidence[AT_SECOND_LEAST] = (float)fewest[1];
    evidence[AT_EQUALS] = (float)equal;
    evidence[AT_DIFFERENTS] = (float)different;
    evidence[AT_CONTRADICTIONS] = (float)contradicting;
}

static int hold_rows(Buffers *buffers, PyObject *given, Py_ssize_t columns, TokenRows *rows) {
    PyObject *bounds, *tokens, *sorted, *together;
    Py_ssize_t n_bounds, n_sorted, n_together;
    if (!PyArg_ParseTuple(given, "OOOO", &bounds, &tokens, &sorted, &together)) return 0;
    if (!(rows->bounds = hold(buffers, bounds, 8, &n_bounds, 0))) return 0;
    if (!(rows->tokens = hold(buffers, tokens, 4, &rows->n_tokens, 0))) return 0;
    if (!(rows->sorted = hold(buffers, sorted, 4, &n_sorted, 0))) return 0;
    if (!(rows->together = hold(buffers, together, 4, &n_together, 0))) return 0;
    rows->rows = columns < 1 ? -1 : (n_bounds - 1) / columns;
    if (columns < 1 || n_bounds < 1 || rows->rows * columns != n_bounds - 1 || n_sorted != rows->n_tokens ||
        n_together != rows->n_tokens) {
        PyErr_SetString(PyExc_ValueError, "the arrays of a table do not fit together");
        return 0;
    }
    return 1;
}

/* Length of the longest row; 0 with one column. */
static int make_scratch(const TokenRows *rows, Py_ssize_t columns, Scratch *scratch) {
    int64_t longest = 1;
    for (Py_ssize_t r = 0; columns > 1 && r < rows->rows; r++) {
        int64_t length = rows->bounds[(r + 1) * columns] - rows->bounds[r * columns];
        /* A wrong length is found when its row is compared. */
        if (length > longest && length <= rows->n_tokens) longest = length;
    }
    if (!(scratch->tokens = PyMem_RawMalloc(3 * (size_t)longest * sizeof(int32_t)))) return 0;
    scratch->order = scratch->tokens + longest;
    scratch->place = scratch->order + longest;
    return 1;
}

static int hold_facts(Buffers *buffers, PyObject *given, Py_ssize_t columns, const TokenRows *lefts,
                      const TokenRows *rights, Facts *facts) {
    PyObject *kinds, *cells[2], *equal, *levels, *weights[2];
    Py_ssize_t n_kinds, n_cells[2], n_levels, n_weights[2];
    if (!PyArg_ParseTuple(given, "O(OO)OO(OO)d", &kinds, &cells[0], &cells[1], &equal, &levels, &weights[0],
                          &weights[1], &facts->rows))
        return 0;
    if (!(facts->kinds = hold(buffers, kinds, 1, &n_kinds, 0))) return 0;
    if (!(facts->equal = hold(buffers, equal, 4, &facts->values, 0))) return 0;
    if (!(facts->levels = hold(buffers, levels, 4, &n_levels, 0))) return 0;
    for (int side = 0; side < 2; side++) {
        if (!(facts->cells[side] = hold(buffers, cells[side], 4, &n_cells[side], 0))) return 0;
        if (!(facts->weights[side] = hold(buffers, weights[side], 4, &n_weights[side], 0))) return 0;
    }
    if (n_kinds != columns || n_levels != columns * COLUMN_LEVELS ||
        n_cells[0] != lefts->rows * columns || n_cells[1] != rights->rows * columns ||
        n_weights[0] != lefts->n_tokens || n_weights[1] != rights->n_tokens) {
        PyErr_SetString(PyExc_ValueError, "the facts of columns and the tables do not fit together");
        return 0;
    }
    return 1;
}

/* Write the figures of pairs, or only the level of each of their columns. */
static PyObject *compare_rows(PyObject *args, int levels_only) {
    PyObject *characters, *starts, *values, *kinds, *weights, *given_lefts, *given_rights, *given_left, *given_right,
        *given_out, *given_facts, *given_typed, *result = NULL;
    Py_ssize_t n_typed = 0, columns, n_starts, n_kinds, n_weights, pairs, n_right, n_out;
    Vocabulary known;
    TokenRows lefts, rights;
    if (!PyArg_ParseTuple(args, "(OOOOO)dO!O!nOOOO!O", &characters, &starts, &values, &kinds, &weights, &known.heaviest,
                          &PyTuple_Type, &given_lefts, &PyTuple_Type, &given_rights, &columns, &given_left, &given_right,
                          &given_out, &PyTuple_Type, &given_facts, &given_typed))
        return NULL;
    Facts facts;
    Buffers buffers = {.count = 0};
    if (!(known.characters = hold(&buffers, characters, 4, &known.n_characters, 0))) goto done;
    if (!(known.starts = hold(&buffers, starts, 4, &n_starts, 0))) goto done;
    if (!(known.values = hold(&buffers, values, 4, &known.tokens, 0))) goto done;
    if (!(known.kinds = hold(&buffers, kinds, 1, &n_kinds, 0))) goto done;
    if (!(known.weights = hold(&buffers, weights, 4, &n_weights, 0))) goto done;
    if (!hold_rows(&buffers, given_lefts, columns, &lefts) || !hold_rows(&buffers, given_rights, columns, &rights))
        goto done;
    const int64_t *left = hold(&buffers, given_left, 8, &pairs, 0);
    const int64_t *right = left ? hold(&buffers, given_right, 8, &n_right, 0) : NULL;
    if (!right || !hold_facts(&buffers, given_facts, columns, &lefts, &rights, &facts)) goto done;
    facts.typed = given_typed == Py_None ? NULL : hold(&buffers, given_typed, 1, &n_typed, 0);
    if (given_typed != Py_None && !facts.typed) goto done;
    float *out = levels_only ? NULL : hold(&buffers, given_out, 4, &n_out, PyBUF_WRITABLE);
    uint8_t *levels = levels_only ? hold(&buffers, given_out, 1, &n_out, PyBUF_WRITABLE) : NULL;
    if (!out && !levels) goto done;
    Py_ssize_t width = levels_only ? columns : FIGURES;
    int fine = n_starts == known.tokens + 1 && n_kinds == known.tokens && n_weights == known.tokens &&
               known.heaviest > 0 && n_right == pairs && n_out / width == pairs && n_out % width == 0 &&
               (!facts.typed || (n_typed / columns == pairs && n_typed % columns == 0));
    Scratch scratch[2] = {{0}};
    uint8_t *shared = PyMem_RawMalloc((size_t)columns);
    if (!shared || !make_scratch(&lefts, columns, &scratch[0]) || !make_scratch(&rights, columns, &scratch[1])) {
        PyErr_NoMemory();
        goto freed;
    }
    PyThreadState *lock = give_lock(pairs);
    Pattern pattern;
    for (Py_ssize_t p = 0; fine && p < pairs; p++) {
        int64_t a = left[p], b = right[p];
        if (!is_token_row(&known, &lefts, a, columns) || !is_token_row(&known, &rights, b, columns)) {
            fine = 0;
            break;
        }
        const uint8_t *typed = facts.typed ? facts.typed + p * columns : NULL;
        if (levels_only) {
            for (Py_ssize_t c = 0; c < columns; c++)
                levels[p * columns + c] = (uint8_t)compare_values(&known, &lefts, &rights, a, b, columns, c, &facts,
                                                                  typed ? typed[c] : BY_LETTERS, &pattern).level;
            continue;
        }
        const int64_t *of_a = lefts.bounds + a * columns, *of_b = rights.bounds + b * columns;
        Side one = side_of(&lefts, of_a[0], of_a[columns], lefts.together);
        Side other = side_of(&rights, of_b[0], of_b[columns], rights.together);
        int equal = one.count > 0 && same_tokens(&known, &one, &other), both = 0;
        for (Py_ssize_t c = 0; c < columns; c++) both += shared[c] = of_a[c] < of_a[c + 1] && of_b[c] < of_b[c + 1];
        if (both > 0 && both < columns) {
            one = shared_columns(&lefts, of_a, shared, columns, &scratch[0]);
            other = shared_columns(&rights, of_b, shared, columns, &scratch[1]);
        }
        text_figures(&known, &one, &other, out + p * FIGURES, &pattern);
        out[p * FIGURES + OF_EQUAL] = (float)equal;
        column_figures(&known, &lefts, &rights, a, b, columns, &facts, typed, out + p * FIGURES + OF_TEXT, &pattern);
    }
    take_lock(lock);
    if (fine) result = Py_NewRef(Py_None);
    else PyErr_SetString(PyExc_ValueError, "tokens, rows and pairs do not fit together");
freed:
    PyMem_RawFree(shared);
    PyMem_RawFree(scratch[0].tokens);
    PyMem_RawFree(scratch[1].tokens);
done:
    let_go(&buffers);
    return result;
}

static PyObject *pair_figures(PyObject *module, PyObject *args) {
    (void)module;
    return compare_rows(args, 0);
}

static PyObject *column_levels(PyObject *module, PyObject *args) {
    (void)module;
    return compare_rows(args, 1);
}

/* ---- trees ---- */

static PyObject *boosted_sums(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given_figures, *given_starts, *given_feature, *given_cut, *given_below, *given_above, *given_missing,
        *given_value, *given_sums, *result = NULL;
    Py_ssize_t n_figures, n_starts, n, n_cut, n_below, n_above, n_missing, n_value, pairs;
    double base;
    if (!PyArg_ParseTuple(args, "O(OOOOOOO)dO", &given_figures, &given_starts, &given_feature, &given_cut, &given_below,
                          &given_above, &given_missing, &given_value, &base, &given_sums))
        return NULL;
    Buffers buffers = {.count = 0};
    const float *figures = hold(&buffers, given_figures, 4, &n_figures, 0);
    const int32_t *starts = figures ? hold(&buffers, given_starts, 4, &n_starts, 0) : NULL;
    const int32_t *feature = starts ? hold(&buffers, given_feature, 4, &n, 0) : NULL;
    const double *cut = feature ? hold(&buffers, given_cut, 8, &n_cut, 0) : NULL;
    const int32_t *below = cut ? hold(&buffers, given_below, 4, &n_below, 0) : NULL;
    const int32_t *above = below ? hold(&buffers, given_above, 4, &n_above, 0) : NULL;
    const uint8_t *missing = above ? hold(&buffers, given_missing, 1, &n_missing, 0) : NULL;
    const double *value = missing ? hold(&buffers, given_value, 8, &n_value, 0) : NULL;
    double *sums = value ? hold(&buffers, given_sums, 8, &pairs, PyBUF_WRITABLE) : NULL;
    if (!sums) goto done;
    Py_ssize_t width = pairs ? n_figures / pairs : 0;
    int fine = n_cut == n && n_below == n && n_above == n && n_missing == n && n_value == n && width * pairs == n_figures;
    /* Children stand after their parent, so that every walk ends. */
    for (Py_ssize_t i = 0; fine && i < n; i++)
        fine = feature[i] < 0 || ((feature[i] < width || !pairs) && below[i] > i && below[i] < n && above[i] > i && above[i] < n);
    for (Py_ssize_t t = 0; fine && t + 1 < n_starts; t++) fine = starts[t] >= 0 && starts[t] < n;
    if (!fine) {
        PyErr_SetString(PyExc_ValueError, "trees, figures and sums do not fit together");
        goto done;
    }
    PyThreadState *lock = give_lock(pairs);
    for (Py_ssize_t p = 0; p < pairs; p++) {
        const float *row = figures + p * width;
        double sum = base;
        for (Py_ssize_t t = 0; t + 1 < n_starts; t++) {
            int32_t node = starts[t];
            while (feature[node] >= 0) {
                float given = row[feature[node]];
                int down = given != given ? missing[node] : given <= cut[node];
                node = down ? below[node] : above[node];
            }
            sum += value[node];
        }
        sums[p] = sum;
    }
    take_lock(lock);
    result = Py_NewRef(Py_None);
done:
    let_go(&buffers);
    return result;
}
