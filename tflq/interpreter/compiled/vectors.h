/* Vectors of the processor as GNU C has them, and what kinds of numbers a tensor holds. */
#ifndef TFLQ_VECTORS_H
#define TFLQ_VECTORS_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float reals __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef int64_t longs __attribute__((vector_size(4 * LANES)));
/* The same in memory: at any place. */
typedef reals reals_at __attribute__((aligned(4), may_alias));
typedef ints ints_at __attribute__((aligned(1), may_alias));
typedef double doubles __attribute__((vector_size(4 * LANES)));
typedef doubles doubles_at __attribute__((aligned(8), may_alias));
typedef float half_reals __attribute__((vector_size(2 * LANES)));
typedef int32_t half_ints __attribute__((vector_size(2 * LANES)));

/* The one place where instructions are named. DOT: four products of unsigned and signed bytes, added to each lane; without
 * it dense layers multiply real numbers. LOOK_UP: bytes of a table of 128 by the lowest seven bits of each byte. Beside DOT:
 * V, whole numbers near to real ones and saturated halves and bytes of them; PERMUTE, lanes by their places; JOINED, vectors
 * from parts that lie apart; TO_DOUBLES, real numbers of half a vector. */
#if !defined(WITHOUT_DOT) && LANES == 16 && defined(__AVX512VNNI__)
#include <immintrin.h>
#define DOT(sum, x, w) (ints) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(x), (__m512i)(w))
#define V(name) _mm512_##name
#define PERMUTE(x, at) _mm512_permutexvar_epi32(at, x)
#define QUARTER(at) _mm_loadu_si128((const __m128i *)(at))
#define QUARTERS(at, apart) _mm256_inserti128_si256(_mm256_castsi128_si256(QUARTER(at)), QUARTER((at) + (apart)), 1)
#define HALF(at) _mm256_loadu_si256((const __m256i *)(at))
#define JOINED(low, high) (ints) _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)
#define TO_DOUBLES(x) (doubles) _mm512_cvtepi32_pd((__m256i)(x))
typedef __m512i whole_vector;
#ifdef __AVX512VBMI__
#define LOOK_UP(low, high, x) _mm512_permutex2var_epi8(low, x, high)
#endif
#elif !defined(WITHOUT_DOT) && LANES == 8 && defined(__AVXVNNI__)
#include <immintrin.h>
#define DOT(sum, x, w) (ints) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(x), (__m256i)(w))
#define V(name) _mm256_##name
#define PERMUTE(x, at) _mm256_permutevar8x32_epi32(x, at)
typedef __m256i whole_vector;
#endif

#ifdef DOT
#define FLIPPED(bytes) (whole_vector)((ints)(bytes) ^ all_ints((int32_t)0x80808080)) /* x + 128 of signed bytes x */
#endif
#ifndef TO_DOUBLES
#define TO_DOUBLES(x) __builtin_convertvector(x, doubles)
#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 24")

INLINE reals all(float x) { return x - (reals){0}; }
INLINE ints all_ints(int32_t x) { return x - (ints){0}; }

/* sum + x * w of whole numbers whose sums stay below 2^24: exact, so one rounding or two are the same. Everywhere else
 * the compiler may not fuse (-ffp-contract=off): maps are proven for a product that is rounded, then a sum. */
INLINE reals plus_product(reals sum, reals x, reals w)
{
#ifdef __FMA__
    reals found;
    for (int c = 0; c < LANES; c++) {
        found[c] = __builtin_fmaf(x[c], w[c], sum[c]);
    }
    return found;
#else
    return sum + x * w;
#endif
}

/* Elements in the arena: bytes, quantized value - least of the type, where bytes are multiplied; else the quantized
 * values as real numbers. Sums have the kind of the products. */
#ifdef DOT
#define GROUP 4
typedef uint8_t element;
typedef ints sums;
typedef ints_at factors;
typedef int32_t inputs; /* as many elements as one factor takes */
#define MULTIPLY_ADD(sum, x, w) DOT(sum, all_ints(x), w)
#define LEAST(least) 0 /* of the quantized value that an element 0 stands for */
#else
#define GROUP 1
typedef float element;
typedef reals sums;
typedef reals_at factors;
typedef float inputs;
#define MULTIPLY_ADD(sum, x, w) plus_product(sum, all(x), w)
#define LEAST(least) (least)
#endif
#define BYTES ((int64_t)sizeof(element))

/* Whether a lane is not 0. */
INLINE int has_any(ints x)
{
#if LANES == 16 && defined(DOT)
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0;
#else
    const longs parts = (longs)x;
    int64_t found = 0;
    for (int c = 0; c < LANES / 2; c++) {
        found |= parts[c];
    }
    return found != 0;
#endif
}

INLINE reals larger(reals a, reals b)
{
    for (int c = 0; c < LANES; c++) {
        a[c] = a[c] > b[c] ? a[c] : b[c];
    }
    return a;
}

INLINE reals smaller(reals a, reals b)
{
    for (int c = 0; c < LANES; c++) {
        a[c] = a[c] < b[c] ? a[c] : b[c];
    }
    return a;
}

/* A whole number near to each x, halves to the even one, in the way that `store_four` takes it. */
#define MAGIC 12582912.0f /* added within 2^22, it leaves them in a float32's lowest bits */
INLINE reals whole(reals x) { return (x + MAGIC) - MAGIC; }

INLINE ints rounded(reals x)
{
#ifdef DOT
    return (ints)V(cvtps_epi32)(x); /* within 2^31 */
#else
    return (ints)whole(x);
#endif
}

#ifdef DOT
/* Four vectors of whole numbers as bytes: less `least`, which is 0 or -128, within `bottom` and `top`. Of each four lanes,
 * those of all vectors follow each other. */
INLINE whole_vector packed_bytes(const ints *found, int32_t least, int32_t bottom, int32_t top)
{
    const whole_vector low = V(packs_epi32)((whole_vector)found[0], (whole_vector)found[1]);
    const whole_vector high = V(packs_epi32)((whole_vector)found[2], (whole_vector)found[3]);
    whole_vector bytes = least ? FLIPPED(V(packs_epi16)(low, high)) : V(packus_epi16)(low, high);
    if (bottom > 0 || top < 255) {
        bytes = V(min_epu8)(V(max_epu8)(bytes, V(set1_epi8)((char)bottom)), V(set1_epi8)((char)top));
    }
    return bytes;
}

/* The same in the order of vectors. */
INLINE ints in_order(whole_vector packed)
{
#if LANES == 16
    const ints at = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
#else
    const ints at = {0, 4, 1, 5, 2, 6, 3, 7};
#endif
    return (ints)PERMUTE(packed, (whole_vector)at);
}
#endif

/* LANES elements as real numbers. */
INLINE reals load_elements(const char *at)
{
#ifdef DOT
    ints wide;
    for (int c = 0; c < LANES; c++) {
        wide[c] = ((const uint8_t *)at)[c];
    }
    return __builtin_convertvector(wide, reals);
#else
    return *(const reals_at *)at;
#endif
}

/* Store whole numbers as elements: `found` holds them in the lowest byte of each lane, or as real numbers. */
INLINE void store_elements(char *at, ints found)
{
#ifdef DOT
    int32_t wide[LANES];
    memcpy(wide, &found, sizeof wide);
    for (int c = 0; c < LANES; c++) {
        ((uint8_t *)at)[c] = (uint8_t)wide[c];
    }
#else
    *(ints_at *)at = found;
#endif
}

/* Copy the first bytes of a vector, in pieces of fixed size. */
INLINE void copy_part(char *at, const char *from, int32_t bytes)
{
    UNROLL for (int32_t part = 4 * LANES; part; part /= 2) {
        if (bytes & part) {
            memcpy(at, from, (size_t)part);
            at += part;
            from += part;
        }
    }
}

/* The same of the first `count` lanes. */
INLINE void store_some(char *at, ints found, int32_t count)
{
    char kept[4 * LANES];
    store_elements(kept, found);
    copy_part(at, kept, (int32_t)BYTES * (count < LANES ? count : LANES));
}

#endif
