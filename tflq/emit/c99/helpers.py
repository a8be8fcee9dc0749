"""Functions of C that programs call: what numpy's functions do with numbers, and sums over windows.

Each is a text with the types in braces; a program holds those that it uses.
"""

from __future__ import annotations

HELPERS = {
    "larger": "static inline {t} larger_{n}({t} a, {t} b) {{ return a > b ? a : b; }}",
    "smaller": "static inline {t} smaller_{n}({t} a, {t} b) {{ return a < b ? a : b; }}",
    "clamp": "static inline {t} clamp_{n}({t} x, {t} low, {t} high) {{ return x < low ? low : x > high ? high : x; }}",
    "magnitude": "static inline {t} magnitude_{n}({t} x) {{ return x < 0 ? -x : x; }}",
    "sign": "static inline {t} sign_{n}({t} x) {{ return ({t})((x > 0) - (x < 0)); }}",
    "floor_divide": """/* a / b towards minus infinity */
static inline {t} floor_divide_{n}({t} a, {t} b)
{{
    {t} quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}}""",
    "modulo": """/* what floor division leaves: it has the sign of b */
static inline {t} modulo_{n}({t} a, {t} b)
{{
    {t} rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}}""",
    "round_half_even": """/* the nearest whole number, halves to the even one; numbers from 2^52 on are whole */
static inline {t} round_half_even_{n}({t} x)
{{
    const double magic = 0x1.8p+52;
    return magnitude_{n}(x) < ({t})0x1p+51 ? ({t})(((double)x + magic) - magic) : x;
}}""",
    "cut": """/* towards 0 */
static inline {t} cut_{n}({t} x) {{ return magnitude_{n}(x) < ({t})0x1p+62 ? ({t})(int64_t)x : x; }}""",
    "floor": """static inline {t} floor_{n}({t} x)
{{
    {t} whole = cut_{n}(x);
    return whole > x ? whole - 1 : whole;
}}""",
    "ceil": """static inline {t} ceil_{n}({t} x)
{{
    {t} whole = cut_{n}(x);
    return whole < x ? whole + 1 : whole;
}}""",
    "finite": """/* 0 for what is no number, the largest ones for infinities */
static inline {t} finite_{n}({t} x) {{ return x != x ? 0 : x > {most} ? {most} : x < -{most} ? -{most} : x; }}""",
    "copy_sign": """static inline {t} copy_sign_{n}({t} x, {t} sign) {{ return (x < 0) != (sign < 0) ? -x : x; }}""",
}
NEEDS = {
    "round_half_even": ("magnitude",),
    "cut": ("magnitude",),
    "floor": ("magnitude", "cut"),
    "ceil": ("magnitude", "cut"),
}
"""Helpers that others call, in the order in which they must stand."""

WINDOW = """/* Where a window lies: output row r reads rows r * stride_y - top + k * dilation_y, k < kernel_height. */
struct window {
    int32_t height, width, channels;
    int32_t kernel_height, kernel_width;
    int32_t stride_y, stride_x, dilation_y, dilation_x;
    int32_t top, left;
};"""

WINDOWS = {
    "convolution_sum": """/* sum of x * w over the taps of one output and `depth` channels from `first` on; taps outside hold `outside` */
static inline {a} convolution_sum_{n}(const {x} *image, const {w} *weights, const struct window *at, int32_t row,
                                      int32_t column, int32_t first, int32_t depth, {a} outside)
{{
    {a} sum = 0;
    for (int32_t ky = 0; ky < at->kernel_height; ky++) {{
        int32_t y = row * at->stride_y - at->top + ky * at->dilation_y;
        for (int32_t kx = 0; kx < at->kernel_width; kx++) {{
            int32_t x = column * at->stride_x - at->left + kx * at->dilation_x;
            int inside = y >= 0 && y < at->height && x >= 0 && x < at->width;
            for (int32_t c = 0; c < depth; c++) {{
                sum += *weights * (inside ? image[(y * at->width + x) * at->channels + first + c] : outside);
                weights++;
            }}
        }}
    }}
    return sum;
}}""",
    "transposed_sum": """/* sum of x * w over the pixels whose windows reach one output */
static inline {a} transposed_sum_{n}(const {x} *image, const {w} *weights, const struct window *at, int32_t row, int32_t column)
{{
    {a} sum = 0;
    for (int32_t ky = 0; ky < at->kernel_height; ky++) {{
        int32_t y = row + at->top - ky;
        for (int32_t kx = 0; kx < at->kernel_width; kx++) {{
            int32_t x = column + at->left - kx;
            if (y >= 0 && y % at->stride_y == 0 && y / at->stride_y < at->height && x >= 0 && x % at->stride_x == 0 &&
                x / at->stride_x < at->width) {{
                const {x} *pixel = image + (y / at->stride_y * at->width + x / at->stride_x) * at->channels;
                for (int32_t c = 0; c < at->channels; c++) {{
                    sum += weights[(ky * at->kernel_width + kx) * at->channels + c] * pixel[c];
                }}
            }}
        }}
    }}
    return sum;
}}""",
    "window_sum": """/* sum over the taps inside the image */
static inline {a} window_sum_{n}(const {x} *image, const struct window *at, int32_t row, int32_t column, int32_t channel)
{{
    {a} sum = 0;
    for (int32_t ky = 0; ky < at->kernel_height; ky++) {{
        int32_t y = row * at->stride_y - at->top + ky * at->dilation_y;
        for (int32_t kx = 0; kx < at->kernel_width; kx++) {{
            int32_t x = column * at->stride_x - at->left + kx * at->dilation_x;
            if (y >= 0 && y < at->height && x >= 0 && x < at->width) {{
                sum += image[(y * at->width + x) * at->channels + channel];
            }}
        }}
    }}
    return sum;
}}""",
    "window_largest": """/* largest of the taps inside the image; `least` where there are none */
static inline {a} window_largest_{n}(const {x} *image, const struct window *at, int32_t row, int32_t column,
                                     int32_t channel, {a} least)
{{
    {a} largest = least;
    for (int32_t ky = 0; ky < at->kernel_height; ky++) {{
        int32_t y = row * at->stride_y - at->top + ky * at->dilation_y;
        for (int32_t kx = 0; kx < at->kernel_width; kx++) {{
            int32_t x = column * at->stride_x - at->left + kx * at->dilation_x;
            if (y >= 0 && y < at->height && x >= 0 && x < at->width) {{
                {a} tap = image[(y * at->width + x) * at->channels + channel];
                largest = tap > largest ? tap : largest;
            }}
        }}
    }}
    return largest;
}}""",
}
