/* SPDX-License-Identifier: MIT-0

   onnx_run_narrow.c: the types of onnx_run.h with fewer than 16 bits that are not int8 or uint8:
   float8 in five kinds, float4, and integers of 4 and 2 bits. At run time an element is one byte;
   onnx_graph.c unpacks those of which a byte of the file holds several.

   ONNX defines only conversions for them, and QuantizeLinear and DequantizeLinear. */
#include "onnx_operator.h"

/* A floating-point format: a sign (unless scale), an exponent, a mantissa. */
typedef struct {
    int type, exponent, mantissa, bias; /* bits, bits, and what is subtracted from the exponent */
    float most;                         /* the largest number */
    int infinite;                       /* the largest exponent is that of infinity and NaN */
    int no_number;                      /* the code of NaN where it has no infinity; -1: none */
} onnx_narrow;

static const onnx_narrow onnx_narrow_formats[] = {
    /* clang-format off */
    { ONNX_F8_E4M3FN,   4, 3, 7,  448.0f,   0, 0x7F },
    { ONNX_F8_E4M3FNUZ, 4, 3, 8,  240.0f,   0, 0x80 },
    { ONNX_F8_E5M2,     5, 2, 15, 57344.0f, 1, 0x7E },
    { ONNX_F8_E5M2FNUZ, 5, 2, 16, 57344.0f, 0, 0x80 },
    { ONNX_F4_E2M1,     2, 1, 1,  6.0f,     0, -1 },
    /* clang-format on */
};

static const onnx_narrow *onnx_narrow_of(int type)
{
    size_t k;
    for (k = 0; k < sizeof onnx_narrow_formats / sizeof *onnx_narrow_formats; k++) {
        if (onnx_narrow_formats[k].type == type)
            return onnx_narrow_formats + k;
    }
    return NULL;
}

int onnx_is_narrow_float(int type) { return type == ONNX_F8_E8M0 || onnx_narrow_of(type); }

int onnx_narrow_bits(int type)
{
    switch (type) {
    case ONNX_U4:
    case ONNX_I4: return 4;
    case ONNX_U2:
    case ONNX_I2: return 2;
    default: return 0;
    }
}

float onnx_from_narrow(int type, uint8_t code)
{
    const onnx_narrow *f = onnx_narrow_of(type);
    int sign, e, m;
    float x;
    if (type == ONNX_F8_E8M0)
        return code == 255 ? (float)NAN : ldexpf(1, code - 127);
    if (!f)
        return 0;
    sign = code >> (f->exponent + f->mantissa) & 1;
    e = code >> f->mantissa & ((1 << f->exponent) - 1);
    m = code & ((1 << f->mantissa) - 1);
    if (f->infinite && e == (1 << f->exponent) - 1)
        x = m ? (float)NAN : (float)HUGE_VAL;
    else if (code == f->no_number || (f->no_number == 0x7F && code == 0xFF))
        x = (float)NAN;
    else if (e)
        x = ldexpf((float)(m + (1 << f->mantissa)), e - f->bias - f->mantissa);
    else
        x = ldexpf((float)m, 1 - f->bias - f->mantissa);
    return sign ? -x : x;
}

/* A positive number as a power of 2: the exponent plus 127, or 255, which is NaN. */
static uint8_t onnx_to_scale(float x, int saturate, onnx_rounding rounding)
{
    const float most = ldexpf(1, 127), least = ldexpf(1, -127);
    float m;
    int e;
    if (isnan(x))
        return 255;
    if (x < 0)
        x = -x;
    if (x < least || x > most) {
        if (!saturate)
            return 255;
        return x < least ? 0 : 254;
    }
    m = frexpf(x, &e); /* x = m·2^e with m from 0.5 to 1, so that the power below x is e - 1 */
    e += 126;
    if ((rounding == ONNX_ROUND_UP && m > 0.5f) || (rounding == ONNX_ROUND_NEAREST && m >= 0.75f))
        e++;
    return (uint8_t)(e > 254 ? 254 : e);
}

/* The exponent of the largest power of 2 that is not above x, but at least `smallest`. */
static int onnx_narrow_power(float x, int smallest)
{
    int e;
    frexpf(x, &e);
    return x < ldexpf(1, smallest) ? smallest : e - 1;
}

/* The code of NaN; of -0 where there is none. */
static uint8_t onnx_narrow_nan(const onnx_narrow *f, int sign)
{
    if (f->no_number < 0)
        return (uint8_t)(1 << (f->exponent + f->mantissa));
    return (uint8_t)(f->no_number == 0x80 ? 0x80 : f->no_number | sign);
}

uint8_t onnx_to_narrow(int type, float x, int saturate, onnx_rounding rounding)
{
    const onnx_narrow *f = onnx_narrow_of(type);
    const float size = fabsf(x);
    int code, e, sign, smallest;
    float rounded;
    if (type == ONNX_F8_E8M0)
        return onnx_to_scale(x, saturate, rounding);
    if (!f)
        return 0;
    sign = (signbit(x) ? 1 : 0) << (f->exponent + f->mantissa);
    if (isnan(x))
        return onnx_narrow_nan(f, sign);
    smallest = 1 - f->bias;
    rounded = 2 * f->most;
    if (size < rounded) {
        /* to units of the last place, at most 2^(mantissa + 1) of them */
        e = onnx_narrow_power(size, smallest);
        rounded = ldexpf(rintf(ldexpf(size, f->mantissa - e)), e - f->mantissa);
    }
    if (rounded > f->most) {
        if (saturate || f->no_number < 0)
            rounded = f->most;
        else if (f->infinite)
            return (uint8_t)(((1 << f->exponent) - 1) << f->mantissa | sign);
        else
            return onnx_narrow_nan(f, sign);
    }
    if (!(rounded > 0))
        return (uint8_t)(f->no_number == 0x80 ? 0 : sign);
    e = onnx_narrow_power(rounded, smallest);
    code = (int)ldexpf(rounded, f->mantissa - e); /* with the leading bit */
    if (code >= 1 << f->mantissa)
        code += (e - smallest) << f->mantissa;
    return (uint8_t)(code | sign);
}
