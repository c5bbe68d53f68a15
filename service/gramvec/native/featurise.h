/* Texts -> rows of the model's table: characters, n-grams, words, memoised chunks and edges.
 *
 * The rules are those of features/plain.py and vocab/memo.py; tests compare all passes with a slow twin. Nothing here
 * knows of Python: the caller holds the texts, and may let go of the interpreter's lock.
 */
#ifndef GRAMVEC_FEATURISE_H
#define GRAMVEC_FEATURISE_H

#include <stdint.h>
#include <string.h>

#define PREFETCH(address) __builtin_prefetch(address)

/* As in vocab/characters.py and vocab/hashing.py. */
enum { CLASS_SHIFT = 16, SPACE = 2, WORD = 1, MOST_ORDERS = 6 };
static const uint64_t MULTIPLIER = 0x9E3779B97F4A7C15u, WORD_SEED = 0xCBF29CE484222325u, WORD_PRIME = 0x100000001B3u;

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
enum { INLINE_CHARS = 9 };
typedef struct {
    uint32_t tag; /* of its hash */
    int32_t row;
    uint32_t begin;  /* in `chars` */
    uint16_t length; /* 0: empty */
    uint16_t first_chars[INLINE_CHARS];
} Word;

typedef struct {
    Word *slots;
    const uint16_t *chars;
    uint64_t mask;
    int shift;
    int64_t longest;
} Words;

typedef struct {
    const uint32_t *table; /* for each code point: class << 16 | id */
    int64_t orders[MOST_ORDERS];
    uint64_t masks[MOST_ORDERS];
    int n_orders, bits;
    int has_words, has_memo;
    int64_t reach;
    int32_t unknown_row;
    Pairs ngrams, edges;
    Words words, chunks;
} Features;

typedef struct {
    const void *data;
    int64_t length;
    int width; /* bytes of a code point: 1, 2, 4 */
} Text;

/* Look-ups that were begun (their cache lines are on the way) and rows that are known, in the order of the text. */
enum { PENDING = 512 };
typedef struct {
    uint64_t keys[PENDING]; /* 0: `places` holds the row */
    uint32_t places[PENDING];
    int count;
    int32_t *at; /* where the next row is written */
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

/* There must be an empty slot. */
static void add_pair(Pairs *pairs, uint64_t key, int32_t row) {
    uint64_t slot = key * MULTIPLIER >> pairs->shift;
    while (pairs->slots[slot].key != 0) slot = (slot + 1) & pairs->mask;
    pairs->slots[slot] = (Pair){key, row};
}

static void resolve(const Features *f, Pending *pending) {
    int32_t *at = pending->at;
    for (int i = 0; i < pending->count; i++) {
        uint64_t key = pending->keys[i];
        int32_t row = key ? find_pair(&f->ngrams, key, pending->places[i]) : (int32_t)pending->places[i];
        *at = row; /* overwritten by the next where there is no such n-gram */
        at += row >= 0;
    }
    pending->at = at;
    pending->count = 0;
}

static inline void push_row(const Features *f, Pending *pending, int32_t row) {
    if (pending->count == PENDING) resolve(f, pending);
    pending->keys[pending->count] = 0;
    pending->places[pending->count++] = (uint32_t)row;
}

/* There must be room for it. */
static inline void push_ngram(const Features *f, Pending *pending, uint64_t key) {
    uint32_t slot = (uint32_t)(key * MULTIPLIER >> f->ngrams.shift);
    PREFETCH(&f->ngrams.slots[slot]);
    pending->keys[pending->count] = key;
    pending->places[pending->count++] = slot;
}

/* The text's ids and classes, padded and with single spaces; returns how many, 0 for a text without any. */
static int64_t read_characters(const Features *f, const Text *text, uint16_t *ids, uint8_t *classes,
                               int64_t *unknown) {
    const uint32_t *table = f->table;
    uint16_t space = (uint16_t)table[32];
    int64_t length = 1;
    int after_space = 1;
    ids[0] = space;
    classes[0] = SPACE;
#define READ(TYPE)                                                                                  \
    for (int64_t i = 0; i < text->length; i++) {                                                    \
        uint32_t code = table[((const TYPE *)text->data)[i]];                                       \
        int is_space = code >> CLASS_SHIFT == SPACE;                                                \
        ids[length] = is_space ? space : (uint16_t)code;                                            \
        classes[length] = (uint8_t)(code >> CLASS_SHIFT);                                           \
        length += !(is_space & after_space);                                                        \
        after_space = is_space;                                                                     \
        *unknown += !is_space & ((uint16_t)code == 0);                                              \
    }
    if (text->width == 1) {
        READ(uint8_t)
    } else if (text->width == 2) {
        READ(uint16_t)
    } else {
        READ(uint32_t)
    }
#undef READ
    if (length == 1) return 0;
    if (!after_space) {
        ids[length] = space;
        classes[length++] = SPACE;
    }
    return length;
}

/* Each n-gram by its last character, shorter ones first. */
static inline void push_ngrams(const Features *f, Pending *pending, const uint16_t *ids, int64_t from, int64_t end) {
    uint64_t history = 0;
    int64_t run = 0;
    int n_orders = f->n_orders;
    for (int64_t i = from; i < end; i++) {
        if (ids[i] == 0) {
            run = 0;
            continue;
        }
        history = history << f->bits | ids[i];
        run++;
        if (pending->count > PENDING - MOST_ORDERS) resolve(f, pending);
        for (int k = 0; k < n_orders && run >= f->orders[k]; k++) push_ngram(f, pending, history & f->masks[k]);
    }
}

/* The n-grams with characters on both sides of `space` that end before the next space, or in it (at `end`). */
static inline void push_crossing(const Features *f, Pending *pending, const uint16_t *ids, int64_t space, int64_t end) {
    int n_orders = f->n_orders, shortest = 0;
    int64_t longest = f->orders[n_orders - 1];
    int64_t from = space - longest + 2 > 0 ? space - longest + 2 : 0;
    int64_t last = space + longest - 2 < end ? space + longest - 2 : end;
    uint64_t history = 0;
    int64_t run = 0;
    for (int64_t i = from; i <= last; i++) {
        if (ids[i] == 0) {
            run = 0;
            continue;
        }
        history = history << f->bits | ids[i];
        run++;
        if (i <= space) continue;
        if (pending->count > PENDING - MOST_ORDERS) resolve(f, pending);
        while (shortest < n_orders && f->orders[shortest] < i - space + 2) shortest++;
        for (int k = shortest; k < n_orders && run >= f->orders[k]; k++)
            push_ngram(f, pending, history & f->masks[k]);
    }
}

/* Whether all characters have ids, and the hash of these. */
static inline int hash_word(const uint16_t *ids, int64_t length, uint64_t *hash) {
    uint64_t value = WORD_SEED;
    for (int64_t i = 0; i < length; i++) {
        if (ids[i] == 0) return 0;
        value = (value ^ ids[i]) * WORD_PRIME;
    }
    *hash = value;
    return 1;
}

static inline Word *slot_of(const Words *words, uint64_t hash) {
    return &words->slots[hash * MULTIPLIER >> words->shift];
}

static inline int32_t find_word(const Words *words, const uint16_t *ids, int64_t length, uint64_t hash) {
    for (const Word *slot = slot_of(words, hash); slot->length != 0;
         slot = words->slots + (((uint64_t)(slot - words->slots) + 1) & words->mask)) {
        if (slot->tag != (uint32_t)hash || slot->length != length) continue;
        int64_t inlined = length < INLINE_CHARS ? length : INLINE_CHARS;
        if (memcmp(slot->first_chars, ids, (size_t)inlined * sizeof *ids) == 0 &&
            memcmp(words->chars + slot->begin + inlined, ids + inlined, (size_t)(length - inlined) * sizeof *ids) == 0)
            return slot->row;
    }
    return -1;
}

/* There must be an empty slot, and 1 to 65,535 characters, all with ids. */
static void add_word(Words *words, uint32_t begin, uint16_t length, int32_t row) {
    const uint16_t *ids = words->chars + begin;
    uint64_t hash = 0;
    hash_word(ids, length, &hash);
    Word *slot = slot_of(words, hash);
    while (slot->length != 0) slot = words->slots + (((uint64_t)(slot - words->slots) + 1) & words->mask);
    *slot = (Word){.tag = (uint32_t)hash, .row = row, .begin = begin, .length = length};
    memcpy(slot->first_chars, ids, (length < INLINE_CHARS ? length : INLINE_CHARS) * sizeof *ids);
}

static void push_words(const Features *f, Pending *pending, const uint16_t *ids, const uint8_t *classes, int64_t from,
                       int64_t end) {
    for (int64_t i = from; i < end;) {
        int64_t begin = i++;
        if (classes[begin] == SPACE) continue;
        if (classes[begin] == WORD)
            while (classes[i] == WORD) i++; /* the padding ends every run */
        int32_t row = -1;
        uint64_t hash;
        if (i - begin <= f->words.longest && hash_word(ids + begin, i - begin, &hash))
            row = find_word(&f->words, ids + begin, i - begin, hash);
        if (row < 0) {
            row = f->unknown_row;
            pending->unknown++;
        }
        if (row >= 0) push_row(f, pending, row);
    }
}

/* Chunks looked at together, so that the table's lines for the last are on the way while the first is searched. */
enum { WINDOW = 32 };
typedef struct {
    int64_t space, end;
    int known; /* whether the chunk may be in the memo */
    uint64_t hash;
    uint64_t edge; /* 0: none that could be known */
    uint64_t edge_slot;
} Chunk;

static inline uint64_t edge_of(const Features *f, const uint16_t *ids, int64_t space, int64_t end) {
    if (f->reach == 0 || space == 0) return 0;
    int64_t from = space - f->reach > 0 ? space - f->reach : 0;
    int64_t last = space + f->reach < end ? space + f->reach : end;
    uint64_t key = 0;
    for (int64_t i = from; i <= last; i++) {
        if (ids[i] == 0) return 0;
        key = key << f->bits | ids[i];
    }
    return key;
}

static void push_memoised(const Features *f, Pending *pending, const uint16_t *ids, const uint8_t *classes,
                          int64_t length) {
    Chunk window[WINDOW];
    int64_t space = 0;
    while (space < length - 1) {
        int count = 0;
        for (; count < WINDOW && space < length - 1; count++) {
            Chunk *chunk = &window[count];
            int64_t end = space + 1;
            while (classes[end] != SPACE) end++;
            chunk->space = space;
            chunk->end = end;
            chunk->known = end - space - 1 <= f->chunks.longest && hash_word(ids + space + 1, end - space - 1, &chunk->hash);
            if (chunk->known) PREFETCH(slot_of(&f->chunks, chunk->hash));
            chunk->edge = edge_of(f, ids, space, end);
            chunk->edge_slot = chunk->edge * MULTIPLIER >> f->edges.shift;
            if (chunk->edge) PREFETCH(&f->edges.slots[chunk->edge_slot]);
            space = end;
        }
        for (int i = 0; i < count; i++) {
            const Chunk *chunk = &window[i];
            int32_t row;
            if (chunk->space > 0) {
                row = chunk->edge ? find_pair(&f->edges, chunk->edge, chunk->edge_slot) : -1;
                if (row >= 0)
                    push_row(f, pending, row);
                else
                    push_crossing(f, pending, ids, chunk->space, chunk->end);
            }
            row = -1;
            if (chunk->known)
                row = find_word(&f->chunks, ids + chunk->space + 1, chunk->end - chunk->space - 1, chunk->hash);
            if (row >= 0) {
                push_row(f, pending, row);
            } else {
                push_ngrams(f, pending, ids, chunk->space, chunk->end + 1);
                if (f->has_words) push_words(f, pending, ids, classes, chunk->space, chunk->end + 1);
            }
        }
    }
}

/* Write the rows of all texts and where each text's end; return the end of the rows, and add to what is unknown.
 *
 * rows: room for n_orders + 1 times the characters of all texts and 2 for each. ids, classes: scratch of the longest
 * text's characters and 2.
 */
static int32_t *featurise(const Features *f, const Text *texts, int64_t n, int32_t *rows, int64_t *offsets, uint16_t *ids,
                          uint8_t *classes, int64_t *unknown) {
    Pending pending = {.count = 0, .at = rows};
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = read_characters(f, &texts[i], ids, classes, &pending.unknown);
        if (length > 0 && f->has_memo) {
            push_memoised(f, &pending, ids, classes, length);
        } else if (length > 0) {
            push_ngrams(f, &pending, ids, 0, length);
            if (f->has_words) push_words(f, &pending, ids, classes, 0, length);
        }
        resolve(f, &pending);
        offsets[i + 1] = pending.at - rows;
    }
    *unknown = pending.unknown;
    return pending.at;
}

#endif
