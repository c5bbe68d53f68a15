/* Texts -> rows of the model's table: characters, n-grams, words, memoized chunks and edges.
 *
 * The rules are those of features/numpy_reference.py, text/suffixes.py and text/memo.py; tests compare all passes with a slow
 * reference. Nothing here knows of Python: the caller holds the texts, and may let go of the interpreter's lock.
 */
#ifndef GRAMVEC_FEATURIZE_H
#define GRAMVEC_FEATURIZE_H

#include <stdint.h>
#include <string.h>

#include "rows.h"

#define PREFETCH(address) __builtin_prefetch(address)

/* As in text/characters.py and text/hashing.py. */
enum { PAGE_SHIFT = 8, CLASS_SHIFT = 16, SPACE = 2, WORD = 1 };
enum { MAX_ORDERS = 6, LONGEST_ORDER = 6, LONGEST_REACH = LONGEST_ORDER - 2, LONGEST_EDGE = 2 * LONGEST_REACH + 1 };
enum { MAX_BITS = 16 }; /* of a character's id */
/* What a word without a row has: nothing, or its n-grams, which are then all the n-grams that there are. */
enum { NO_ROW = -1, SPELT = -2 };
/* Positions are int32, and a text is at most three times as long in normalization form C (UAX #15). */
enum { LONGEST_TEXT = 1 << 28 };
/* Slots that are taken one after the other, which a search may have to pass. Of four million keys that were not chosen to
 * collide, in a table half full, it is 60. */
enum { LONGEST_SEARCH = 512 };
static const uint64_t MULTIPLIER = 0x9E3779B97F4A7C15u;
/* Constants of word hashes, which differ from those of text/hashing.py: they take four ids at once. */
static const uint64_t WORD_SEED = 0xCBF29CE484222325u, WORD_PRIME = 0xFF51AFD7ED558CCDu;

/* Key and row side by side: a look-up waits for one cache line, not for two. */
typedef struct {
    uint64_t key; /* 0: empty */
    int32_t row;
} Pair;

typedef struct {
    Pair *slots;
    uint64_t mask;
    int shift;
} Pairs;

/* A word and its row in half a cache line: of a short word nothing else is looked at. */
enum { INLINE_CHARS = 8 };
typedef struct {
    uint64_t first_chars[2]; /* as many ids as fit, then zeros */
    uint32_t tag;            /* of its hash */
    int32_t row;
    uint32_t begin;  /* in `chars` */
    uint16_t length; /* 0: empty */
} Word;

typedef struct {
    Word *slots;
    const uint16_t *chars;
    uint64_t mask;
    int shift;
    int64_t longest;
} Words;

typedef struct {
    const uint16_t *pages;   /* for each 256 code points: where they are among the entries */
    const uint32_t *entries; /* for each code point: class << 16 | id */
    int64_t orders[MAX_ORDERS];
    uint64_t masks[MAX_ORDERS];
    int fitting[LONGEST_ORDER + 1]; /* how many orders are at most so long */
    uint64_t edge_masks[LONGEST_EDGE + 1];
    int n_orders, bits;
    int has_words;
    int64_t reach;
    int32_t unknown_row; /* a row, NO_ROW or SPELT */
    Pairs ngrams, edges;
    Words words, chunks;
} Features;

typedef struct {
    const void *data;
    int64_t length;
    int width; /* bytes of a code point: 1, 2, 4 */
} Text;

/* A text's characters, padded and with single spaces. Of each its id and class, how many characters up to it have ids
 * (to 65,535), and the ids of the last ones as a key: the n-gram of any order that ends there is its lowest bits. */
typedef struct {
    uint64_t *histories;
    int32_t *spaces; /* where the spaces are */
    uint16_t *ids, *runs;
    uint8_t *classes;
    int64_t n_spaces;
} Characters;

/* What is read beyond a text's end. */
enum { SLACK = 2 + INLINE_CHARS, BYTES_A_CHARACTER = 8 + 4 + 2 + 2 + 1 };

static Characters characters_in(void *scratch, int64_t room) {
    uint64_t *histories = scratch;
    int32_t *spaces = (int32_t *)(histories + room);
    uint16_t *ids = (uint16_t *)(spaces + room);
    return (Characters){histories, spaces, ids, ids + room, (uint8_t *)(ids + 2 * room), 0};
}

/* The rows of a text as they are found, and look-ups that were begun: their cache lines are on the way.
 *
 * A look-up is for the longest n-gram that there is, of those of some orders that end in one place. */
enum { PENDING = 512 };
typedef struct {
    uint64_t keys[PENDING]; /* of the longest */
    uint32_t slots[PENDING];
    int8_t longest[PENDING], shortest[PENDING]; /* indices of the orders */
    int count;
    int32_t *at; /* where the next row is written */
    const Rows *rows; /* whose rows they are, to ask memory for each as it is found; or NULL */
    int64_t unknown; /* characters without an id, words without a row */
} Pending;

/* The row of a key whose search begins at `slot`, -1 where there is none. */
static inline int32_t find_pair(const Pairs *pairs, uint64_t key, uint64_t slot) {
    const Pair *slots = pairs->slots;
    while (slots[slot].key != key) {
        if (slots[slot].key == 0) return -1;
        slot = (slot + 1) & pairs->mask;
    }
    return slots[slot].row;
}

static inline uint64_t slot_of_pair(const Pairs *pairs, uint64_t key) { return key * MULTIPLIER >> pairs->shift; }

/* Why a table of what a stranger chose is not made. */
typedef enum { FINE, NO_MEMORY, TOO_MANY, ZERO_KEY, NEGATIVE_ROW, REPEATED, CROWDED } Fault;

/* There must be an empty slot. */
static Fault add_pair(Pairs *pairs, uint64_t key, int32_t row) {
    if (key == 0) return ZERO_KEY;
    if (row < 0) return NEGATIVE_ROW;
    uint64_t slot = slot_of_pair(pairs, key);
    for (int passed = 0; pairs->slots[slot].key != 0; slot = (slot + 1) & pairs->mask) {
        if (pairs->slots[slot].key == key) return REPEATED;
        if (++passed > LONGEST_SEARCH) return CROWDED;
    }
    pairs->slots[slot] = (Pair){key, row};
    return FINE;
}

/* Whether a search for what is not there could take long, though each that is there was near its place: `is_empty` of
 * `slot`, for each of mask + 1 slots and, since searches go round, the first ones again. */
#define IF_CROWDED(mask, is_empty)                                          \
    for (uint64_t at = 0, run = 0; at <= (mask) + LONGEST_SEARCH; at++) {   \
        uint64_t slot = at & (mask);                                        \
        run = (is_empty) ? 0 : run + 1;                                     \
        if (run > LONGEST_SEARCH) return CROWDED;                           \
    }

static Fault check_pairs(const Pairs *pairs) {
    IF_CROWDED(pairs->mask, pairs->slots[slot].key == 0)
    return FINE;
}

/* Ask memory for a row that is added much later. The nearest cache has no room for all rows of a text. */
static inline void ask_for(const Rows *rows, int32_t row) {
    if (rows) PREFETCH_ROW(rows->first + row * rows->stride, rows->stride, 1);
}

static inline void found(Pending *pending, int32_t row) {
    *pending->at++ = row;
    ask_for(pending->rows, row);
}

static void resolve(const Features *f, Pending *pending) {
    int32_t *restrict at = pending->at;
    const Pairs ngrams = f->ngrams;
    for (int i = 0, count = pending->count; i < count; i++) {
        uint64_t key = pending->keys[i];
        int32_t row = find_pair(&ngrams, key, pending->slots[i]);
        /* Most are found at once. */
        for (int k = pending->longest[i] - 1; row < 0 && k >= pending->shortest[i]; k--)
            row = find_pair(&ngrams, key & f->masks[k], slot_of_pair(&ngrams, key & f->masks[k]));
        *at = row; /* overwritten by the next where there is no such n-gram */
        at += row >= 0;
        if (row >= 0) ask_for(pending->rows, row);
    }
    pending->at = at;
    pending->count = 0;
}

/* The longest n-gram of these orders that `history` ends in. There must be room for it. */
static inline void push_longest(const Features *f, Pending *pending, uint64_t history, int longest, int shortest) {
    uint64_t key = history & f->masks[longest];
    uint32_t slot = (uint32_t)slot_of_pair(&f->ngrams, key);
    PREFETCH(&f->ngrams.slots[slot]);
    pending->keys[pending->count] = key;
    pending->longest[pending->count] = (int8_t)longest;
    pending->shortest[pending->count] = (int8_t)shortest;
    pending->slots[pending->count++] = slot;
}

/* Fill `chars`; returns how many there are, 0 for a text of only white space. */
static int64_t read_characters(const Features *f, const Text *text, Characters *chars, int64_t *unknown) {
    const uint16_t *pages = f->pages;
    const uint32_t *entries = f->entries, *latin = entries + ((size_t)pages[0] << PAGE_SHIFT);
    uint16_t space = (uint16_t)latin[32];
    uint64_t history = space;
    int64_t length = 1;
    int32_t n_spaces = 1;
    uint32_t run = space != 0, bits = (uint32_t)f->bits;
    int after_space = 1;
    /* Held here: a write through one could change the others, for all that the compiler knows. */
    uint64_t *restrict histories = chars->histories;
    int32_t *restrict spaces = chars->spaces;
    uint16_t *restrict ids = chars->ids, *restrict runs = chars->runs;
    uint8_t *restrict classes = chars->classes;
    int64_t strange = 0;
    ids[0] = space;
    classes[0] = SPACE;
    runs[0] = (uint16_t)run;
    histories[0] = history;
    spaces[0] = 0;
#define READ(TYPE, ENTRY)                                                                           \
    for (int64_t i = 0; i < text->length; i++) {                                                    \
        uint32_t point = ((const TYPE *)text->data)[i], code = ENTRY;                               \
        int is_space = code >> CLASS_SHIFT == SPACE;                                                \
        if (is_space & after_space) continue;                                                       \
        after_space = is_space;                                                                     \
        history = history << bits | (uint16_t)code;                                                 \
        run = (uint16_t)code == 0 ? 0 : run + (run < UINT16_MAX);                                   \
        ids[length] = (uint16_t)code;                                                               \
        classes[length] = (uint8_t)(code >> CLASS_SHIFT);                                           \
        runs[length] = (uint16_t)run;                                                               \
        histories[length] = history;                                                                \
        spaces[n_spaces] = (int32_t)length;                                                         \
        n_spaces += is_space;                                                                       \
        length++;                                                                                   \
        strange += !is_space & ((uint16_t)code == 0);                                               \
    }
#define ANY entries[(size_t)pages[point >> PAGE_SHIFT] << PAGE_SHIFT | (point & ((1 << PAGE_SHIFT) - 1))]
    if (text->width == 1) {
        READ(uint8_t, latin[point])
    } else if (text->width == 2) {
        READ(uint16_t, ANY)
    } else {
        READ(uint32_t, ANY)
    }
#undef ANY
#undef READ
    *unknown += strange;
    if (length == 1) return 0;
    if (!after_space) {
        ids[length] = space;
        classes[length] = SPACE;
        runs[length] = (uint16_t)(space == 0 ? 0 : run + (run < UINT16_MAX));
        histories[length] = history << bits | space;
        spaces[n_spaces++] = (int32_t)length++;
    }
    chars->n_spaces = n_spaces;
    return length;
}

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Each n-gram from `from` on that ends before `end`, by its last character, shorter ones first; with `sums` only the
 * longest that ends in each character. */
static inline void push_ngrams(const Features *f, Pending *pending, const Characters *chars, int64_t from, int64_t end,
                               int sums) {
    for (int64_t i = from; i < end; i++) {
        int fitting = f->fitting[smaller(smaller(chars->runs[i], i - from + 1), LONGEST_ORDER)];
        if (pending->count > PENDING - MAX_ORDERS) resolve(f, pending);
        if (sums && fitting > 0) push_longest(f, pending, chars->histories[i], fitting - 1, 0);
        for (int k = 0; !sums && k < fitting; k++) push_longest(f, pending, chars->histories[i], k, k);
    }
}

/* Of the n-grams with characters on both sides of `space` that end before the next space, or in it (at `end`), the
 * longest that ends in each character. */
static inline void push_crossing(const Features *f, Pending *pending, const Characters *chars, int64_t space,
                                 int64_t end) {
    int64_t last = smaller(space + f->orders[f->n_orders - 1] - 2, end);
    if (pending->count > PENDING - LONGEST_ORDER) resolve(f, pending);
    for (int64_t i = space + 1; i <= last; i++) {
        int fitting = f->fitting[smaller(chars->runs[i], LONGEST_ORDER)], inside = f->fitting[i - space + 1];
        if (inside < fitting) push_longest(f, pending, chars->histories[i], fitting - 1, inside);
    }
}

/* There must be INLINE_CHARS ids to read, the word's or not: memcmp of a few bytes took a tenth of all the time. */
static inline void first_chars_of(const uint16_t *ids, int64_t length, uint64_t chars[2]) {
    memcpy(chars, ids, INLINE_CHARS * sizeof *ids);
    if (length < 4) {
        chars[0] &= ((uint64_t)1 << 16 * length) - 1;
        chars[1] = 0;
    } else if (length < INLINE_CHARS) {
        chars[1] &= ((uint64_t)1 << 16 * (length - 4)) - 1;
    }
}

static inline uint64_t hash_word(const uint16_t *ids, int64_t length, const uint64_t chars[2]) {
    uint64_t hash = (chars[0] ^ WORD_SEED) * WORD_PRIME;
    hash = (hash ^ hash >> 32 ^ chars[1]) * WORD_PRIME;
    for (int64_t i = INLINE_CHARS; i < length; i += 4) {
        uint64_t four;
        memcpy(&four, ids + smaller(i, length - 4), sizeof four);
        hash = (hash ^ hash >> 32 ^ four) * WORD_PRIME;
    }
    return hash ^ hash >> 32;
}

static inline Word *slot_of(const Words *words, uint64_t hash) {
    return &words->slots[hash * MULTIPLIER >> words->shift];
}

static inline int is_word(const Words *words, const Word *slot, const uint16_t *ids, int64_t length,
                          const uint64_t chars[2], uint64_t hash) {
    return slot->tag == (uint32_t)hash && slot->length == length && slot->first_chars[0] == chars[0] &&
           slot->first_chars[1] == chars[1] &&
           (length <= INLINE_CHARS || memcmp(words->chars + slot->begin + INLINE_CHARS, ids + INLINE_CHARS,
                                             (size_t)(length - INLINE_CHARS) * sizeof *ids) == 0);
}

static inline Word *next_slot(const Words *words, const Word *slot) {
    return words->slots + (((uint64_t)(slot - words->slots) + 1) & words->mask);
}

static inline int32_t find_word(const Words *words, const uint16_t *ids, int64_t length, const uint64_t chars[2],
                                uint64_t hash) {
    for (const Word *slot = slot_of(words, hash); slot->length != 0; slot = next_slot(words, slot))
        if (is_word(words, slot, ids, length, chars, hash)) return slot->row;
    return -1;
}

/* There must be an empty slot, and 1 to 65,535 characters, all with ids. */
static Fault add_word(Words *words, uint32_t begin, uint16_t length, int32_t row) {
    const uint16_t *ids = words->chars + begin;
    uint16_t padded[INLINE_CHARS] = {0};
    uint64_t chars[2];
    memcpy(padded, ids, (size_t)smaller(length, INLINE_CHARS) * sizeof *ids);
    memcpy(chars, padded, sizeof chars);
    uint64_t hash = hash_word(ids, length, chars);
    Word *slot = slot_of(words, hash);
    for (int passed = 0; slot->length != 0; slot = next_slot(words, slot)) {
        if (is_word(words, slot, ids, length, chars, hash)) return REPEATED;
        if (++passed > LONGEST_SEARCH) return CROWDED;
    }
    *slot = (Word){{chars[0], chars[1]}, (uint32_t)hash, row, begin, length};
    return FINE;
}

static Fault check_words(const Words *words) {
    IF_CROWDED(words->mask, words->slots[slot].length == 0)
    return FINE;
}

/* The n-grams of a word with a space on each side, whatever stands there, by their last character, shorter ones first. */
static void push_spelling(const Features *f, Pending *pending, const Characters *chars, int64_t begin, int64_t end) {
    uint64_t history = chars->ids[0]; /* the padding */
    int64_t run = chars->ids[0] != 0;
    for (int64_t i = begin; i <= end; i++) {
        uint16_t id = i < end ? chars->ids[i] : chars->ids[0];
        history = history << f->bits | id;
        run = id == 0 ? 0 : run + 1;
        if (pending->count > PENDING - MAX_ORDERS) resolve(f, pending);
        /* A space by itself is no n-gram of the word. */
        for (int k = i == end ? f->fitting[1] : 0; k < f->fitting[smaller(run, LONGEST_ORDER)]; k++)
            push_longest(f, pending, history, k, k);
    }
}

static void push_words(const Features *f, Pending *pending, const Characters *chars, int64_t from, int64_t end) {
    const uint8_t *classes = chars->classes;
    for (int64_t i = from; i < end;) {
        int64_t begin = i++;
        if (classes[begin] == SPACE) continue;
        if (classes[begin] == WORD)
            while (classes[i] == WORD) i++; /* the padding ends every run */
        int32_t row = -1;
        int64_t length = i - begin;
        if (length <= f->words.longest && chars->runs[i - 1] >= length) {
            const uint16_t *ids = chars->ids + begin;
            uint64_t first[2];
            first_chars_of(ids, length, first);
            row = find_word(&f->words, ids, length, first, hash_word(ids, length, first));
        }
        if (row < 0) {
            row = f->unknown_row;
            pending->unknown++;
            if (row == SPELT && classes[begin] == WORD) push_spelling(f, pending, chars, begin, i);
        }
        if (row < 0) continue;
        if (f->unknown_row == SPELT) resolve(f, pending); /* rows stand in the order of their words */
        found(pending, row);
    }
}

/* Chunks looked at together, so that the table's lines for the last are on the way while the first is searched. */
enum { WINDOW = 32 };
typedef struct {
    int64_t space, end;
    int known; /* whether the chunk may be in the memo */
    uint64_t first_chars[2], hash;
    uint64_t edge; /* 0: none that could be known */
    uint64_t edge_slot;
} Chunk;

static inline uint64_t edge_of(const Features *f, const Characters *chars, int64_t space, int64_t end) {
    if (f->reach == 0 || space == 0) return 0;
    int64_t from = space - smaller(f->reach, space), last = smaller(space + f->reach, end), length = last - from + 1;
    return chars->runs[last] < length ? 0 : chars->histories[last] & f->edge_masks[length];
}

static inline void look_at(const Features *f, const Characters *chars, int64_t space, int64_t end, Chunk *chunk) {
    const uint16_t *ids = chars->ids + space + 1;
    int64_t length = end - space - 1;
    chunk->space = space;
    chunk->end = end;
    chunk->known = length <= f->chunks.longest && chars->runs[end - 1] >= length;
    if (chunk->known) {
        first_chars_of(ids, length, chunk->first_chars);
        chunk->hash = hash_word(ids, length, chunk->first_chars);
        PREFETCH(slot_of(&f->chunks, chunk->hash));
    }
    chunk->edge = edge_of(f, chars, space, end);
    chunk->edge_slot = slot_of_pair(&f->edges, chunk->edge);
    if (chunk->edge) PREFETCH(&f->edges.slots[chunk->edge_slot]);
}

static inline void push_chunk(const Features *f, Pending *pending, const Characters *chars, const Chunk *chunk) {
    int32_t row;
    if (chunk->space > 0) {
        row = chunk->edge ? find_pair(&f->edges, chunk->edge, chunk->edge_slot) : -1;
        if (row >= 0)
            found(pending, row);
        else
            push_crossing(f, pending, chars, chunk->space, chunk->end);
    }
    row = -1;
    if (chunk->known)
        row = find_word(&f->chunks, chars->ids + chunk->space + 1, chunk->end - chunk->space - 1, chunk->first_chars,
                        chunk->hash);
    if (row >= 0) {
        found(pending, row);
    } else {
        push_ngrams(f, pending, chars, chunk->space, chunk->end + 1, 1);
        if (f->has_words) push_words(f, pending, chars, chunk->space, chunk->end + 1);
    }
}

/* Chunk by chunk: what crosses into it, then what is inside, each in as few rows as have the same sum. */
static void push_sums(const Features *f, Pending *pending, const Characters *chars) {
    Chunk window[WINDOW];
    for (int64_t first = 0; first < chars->n_spaces - 1; first += WINDOW) {
        int64_t count = smaller(WINDOW, chars->n_spaces - 1 - first);
        const int32_t *spaces = chars->spaces + first;
        for (int64_t i = 0; i < count; i++) look_at(f, chars, spaces[i], spaces[i + 1], &window[i]);
        for (int64_t i = 0; i < count; i++) push_chunk(f, pending, chars, &window[i]);
    }
}

static void featurize_text(const Features *f, int sums, const Text *text, Characters *chars, Pending *pending) {
    int64_t length = read_characters(f, text, chars, &pending->unknown);
    if (length > 0 && sums) {
        push_sums(f, pending, chars);
    } else if (length > 0) {
        if (f->unknown_row != SPELT) push_ngrams(f, pending, chars, 0, length, 0);
        resolve(f, pending);
        if (f->has_words) push_words(f, pending, chars, 0, length);
    }
    resolve(f, pending);
}

/* The most rows that this number of characters and texts can have, and one more that resolve may overwrite.
 *
 * A text has m characters with its padding, at most two more than it is given. Without sums it has at most a row for
 * each order at each of them, and for each at most one word; a word that is spelt has n-grams at each of its characters
 * and at the one behind it, which belongs to no other such word. With sums it is cut into C chunks of L >= 1 characters,
 * between C + 1 spaces: m is the sum of all L, and C + 1. What crosses into a chunk is an edge's row, or a row at each
 * character after the space and at the next space: at most L + 1. The chunk is a row, or a row at each character from
 * space to space, L + 2, and at most L words. So 2 L + 3 rows a chunk, which is 2 (m - 1) + C <= 5/2 m in all, for a
 * chunk has a character; or, with words, 3 L + 3: 3 (m - 1). Both are less than 3 m.
 */
static inline int64_t most_rows(const Features *f, int sums, int64_t characters, int64_t texts) {
    int64_t of_each = f->n_orders + f->has_words;
    return (characters + 2 * texts) * (sums && of_each < 3 ? 3 : of_each) + 1;
}

/* Write the rows of all texts and where each text's end; return the end of the rows, and add to what is unknown.
 *
 * sums: whether rows stand for sums (see text/suffixes.py and text/memo.py), or each for a feature by itself.
 * rows: room for most_rows. chars: room for the longest text's characters and SLACK.
 */
static int32_t *featurize(const Features *f, int sums, const Text *texts, int64_t n, int32_t *rows, int64_t *offsets,
                          Characters *chars, int64_t *unknown) {
    Pending pending = {.count = 0, .at = rows};
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        featurize_text(f, sums, &texts[i], chars, &pending);
        offsets[i + 1] = pending.at - rows;
    }
    *unknown = pending.unknown;
    return pending.at;
}

#endif
