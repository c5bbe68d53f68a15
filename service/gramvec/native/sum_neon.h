/* Sums of int8 rows for AArch64: those of sum_weighted, to the bit. Included by sum.h.
 *
 * Four rows at a time, as on x86-64, so that a total is read and written once for four rows. Columns stay in order.
 */
#ifndef GRAMVEC_SUM_NEON_H
#define GRAMVEC_SUM_NEON_H

#include <arm_neon.h>

/* dotprod is of ARMv8.2; every Apple processor has it, and on Linux the kernel reports it. */
#if defined(__ARM_FEATURE_DOTPROD)
#define FOR_DOTPROD
#elif defined(__linux__) && defined(__clang__) && __clang_major__ >= 16 /* before, arm_neon.h has it for -march only */
#define FOR_DOTPROD __attribute__((target("dotprod")))
#elif defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
#if defined(FOR_DOTPROD) && defined(__linux__)
#include <sys/auxv.h>
#endif

static int64_t sum_weighted_neon(const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last,
                                 void *sums) {
    int32_t *total = sums;
    for (int64_t i = from; i < to; i += 4) {
        Four four;
        int good = next_four(t, ids, i, to, last, &four);
        if (good < 4) return i + good;
        int16x8_t weights[4];
        for (int k = 0; k < 4; k++) weights[k] = vdupq_n_s16((int16_t)(four.weights >> 8 * k & 0xFF));
        for (int64_t c = 0; c < t->width; c += 16) {
            if (c % CACHE_LINE == 0)
                for (int k = 0; k < 4; k++) __builtin_prefetch(four.ahead[k] + c);
            int8x16_t rows[4];
            for (int k = 0; k < 4; k++) rows[k] = vld1q_s8((const int8_t *)four.rows[k] + c);
            for (int half = 0; half < 2; half++) {
                int16x8_t wide[4];
                for (int k = 0; k < 4; k++)
                    wide[k] = vmovl_s8(half ? vget_high_s8(rows[k]) : vget_low_s8(rows[k]));
                /* Two products of at most 128 * 128 fit an int16, where both are negative too. */
                int16x8_t first = vmlaq_s16(vmulq_s16(wide[0], weights[0]), wide[1], weights[1]);
                int16x8_t second = vmlaq_s16(vmulq_s16(wide[2], weights[2]), wide[3], weights[3]);
                int32_t *place = total + c + 8 * half;
                int32x4_t low = vaddl_s16(vget_low_s16(first), vget_low_s16(second));
                int32x4_t high = vaddl_s16(vget_high_s16(first), vget_high_s16(second));
                vst1q_s32(place, vaddq_s32(vld1q_s32(place), low));
                vst1q_s32(place + 4, vaddq_s32(vld1q_s32(place + 4), high));
            }
        }
    }
    return -1;
}

#ifdef FOR_DOTPROD
/* One instruction multiplies four bytes by four weights and adds them up. Both are signed there and a weight may be 128,
 * so weights are negative, and their sums are taken away. */
FOR_DOTPROD static int64_t sum_weighted_dotprod(const Table *t, const int32_t *ids, int64_t from, int64_t to,
                                                int64_t last, void *sums) {
    int32_t *total = sums;
    for (int64_t i = from; i < to; i += 4) {
        Four four;
        int good = next_four(t, ids, i, to, last, &four);
        if (good < 4) return i + good;
        int8x16_t weights = vnegq_s8(vreinterpretq_s8_u32(vdupq_n_u32(four.weights))); /* of 128 itself */
        for (int64_t c = 0; c < t->width; c += 16) {
            if (c % CACHE_LINE == 0)
                for (int k = 0; k < 4; k++) __builtin_prefetch(four.ahead[k] + c);
#define LOAD(k) vld1q_s8((const int8_t *)four.rows[k] + c)
            int8x16_t a = LOAD(0), b = LOAD(1), e = LOAD(2), f = LOAD(3);
#undef LOAD
#define PAIRS(zip, x, y) vreinterpretq_s16_s8(zip##_s8(x, y))
            int16x8_t low = PAIRS(vzip1q, a, b), high = PAIRS(vzip2q, a, b);
            int16x8_t low2 = PAIRS(vzip1q, e, f), high2 = PAIRS(vzip2q, e, f);
#undef PAIRS
            int16x8_t quads[4] = {vzip1q_s16(low, low2), vzip2q_s16(low, low2), vzip1q_s16(high, high2),
                                  vzip2q_s16(high, high2)};
            for (int k = 0; k < 4; k++) {
                int32_t *place = total + c + 4 * k;
                int32x4_t negative = vdotq_s32(vdupq_n_s32(0), weights, vreinterpretq_s8_s16(quads[k]));
                vst1q_s32(place, vsubq_s32(vld1q_s32(place), negative));
            }
        }
    }
    return -1;
}
#endif

/* width: see choose_sum; of processors of one width, 512 stands for all that they have. */
static SumRows choose_sum_neon(int width) {
#ifdef FOR_DOTPROD
#ifdef __linux__
    /* HWCAP_ASIMDDP; the kernel's headers of long ago do not name it. */
    int has_dotprod = (getauxval(AT_HWCAP) >> 20 & 1) != 0;
#else
    int has_dotprod = 1;
#endif
    if (width >= 512 && has_dotprod) return sum_weighted_dotprod;
#endif
    return width >= 256 ? sum_weighted_neon : sum_weighted;
}

#endif
