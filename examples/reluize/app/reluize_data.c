/* SPDX-License-Identifier: MIT-0

   reluize_data.c: what the inputs of a model receive, and the labels. See reluize.h.

   Each input of the model has a source: images, a table, an array, a text, or an array that is the
   same for all samples. A source delivers samples in the order of the file's elements; every fifth
   sample is for the test, unless a folder says otherwise.

   MAP
       [1] SOURCES   an input, its samples, their parts
       [2] TABLES    lines of numbers
       [3] ARRAYS    FILE.npy
       [4] IMAGES    folders of pictures, IDX files, CIFAR batches
       [5] TEXTS     characters, words of a vocabulary
       [6] LABELS    FILE.npy, or of the data
       [7] OPENING   which source an input has
       [8] TENSORS   samples as the model takes them */
#include "reluize.h"
#include "npy.h"
#include <errno.h>

enum {
    MOST_SIDE = 4096, /* rows or columns of an image */
    MOST_COLUMNS = 65536,
    MOST_WINDOWS = 500, /* of a text, for the test */
    LONGEST_WORD = 126, /* bytes; none that is longer is in a vocabulary */
    OPEN_TOKENS = 128   /* of a sample, where neither the file nor --size says */
};

/* ---- [1] SOURCES ---- */

typedef enum {
    SOURCE_NONE = 0,
    SOURCE_IMAGES, /* bytes of `set` */
    SOURCE_ROWS,   /* floats */
    SOURCE_ARRAY,  /* elements of a FILE.npy */
    SOURCE_TOKENS, /* integers */
    SOURCE_SAME    /* an array that every run receives as it is */
} source_kind;

typedef struct {
    source_kind kind;
    const char *file;
    int value, type;             /* of the graph; its elements */
    int alone;                   /* a sample is the whole input, which has no batch */
    int once;                    /* the file has one sample, which every run repeats */
    int rank;                    /* of a sample, without the batch; of SOURCE_SAME: of the input */
    int64_t dim[ONNX_MOST_RANK]; /* of that */
    size_t elements;             /* of a sample */
    float pixel[3][256];         /* what a byte of each channel becomes */
    /* SOURCE_IMAGES */
    data_set set;
    size_t channels, rows, columns;
    int last, vector; /* channels are last; the input is a vector, in PyTorch's order */
    /* SOURCE_ROWS, SOURCE_TOKENS: all samples, [sample][element] */
    float *row;
    int32_t *token;
    /* SOURCE_ARRAY, SOURCE_SAME */
    unsigned char *bytes;
    npy array;
    int by_pixel; /* its bytes become those of `pixel` */
} source;

static struct {
    const onnx_graph *graph;
    source source[MOST_INPUTS];
    int sources;
    size_t count[2];
    size_t fixed;  /* samples of every run; 0: any */
    int by_folder; /* the parts are those of a folder; otherwise every fifth is for the test */
    int scaled;    /* an input has images or bytes, to which --mean and --std apply */
    int sized;     /* --size is the size of an input */
    double *own;   /* labels that an input's file has, by sample, in the order of the file */
    size_t own_answers;
    const char *own_file; /* that file */
    const char *unscaled; /* the file of an array of floats that looks like pixels from 0 to 255 */
} data;

data_labels labels;

/* Sample i of a part in the order of the file. */
static size_t place_of(int part, size_t i)
{
    if (data.by_folder)
        return part == TEST ? data.count[TRAIN] + i : i;
    return part == TEST ? 5 * i + 4 : i / 4 * 5 + i % 4;
}

/* Sets how many samples there are, or checks that this source has as many as the others. */
static int set_count(const source *s, size_t train, size_t test)
{
    if (!train || !test)
        return fail("%s: expected at least five samples%s, found %zu", s->file,
                    data.sources > 1 ? ", or one for all samples of the other inputs" : "",
                    train + test);
    if (data.count[TRAIN] && (data.count[TRAIN] != train || data.count[TEST] != test)) {
        return fail("%s: expected %zu samples, as another input has, found %zu", s->file,
                    data.count[TRAIN] + data.count[TEST], train + test);
    }
    data.count[TRAIN] = train;
    data.count[TEST] = test;
    return 0;
}

static int set_samples(const source *s, size_t samples)
{
    return set_count(s, samples - samples / 5, samples / 5);
}

/* Sets the shape of a sample from the declaration: what follows the batch or, with `alone`, all of
   it. */
static void shape_sample(source *s, int alone)
{
    const onnx_declared *d = &data.graph->value[s->value].declared;
    int i;
    s->alone = alone;
    s->rank = d->rank - !alone;
    s->elements = 1;
    for (i = 0; i < s->rank; i++) {
        s->dim[i] = d->dim[i + !alone];
        s->elements *= s->dim[i] < 0 ? 0 : (size_t)s->dim[i];
    }
}

size_t data_count(int part) { return data.count[part]; }

/* The name of an input, ended by 0. */
static const char *input_name(const source *s)
{
    static char name[64];
    deploy_text(name, sizeof name, "%t", &data.graph->value[s->value].name);
    return name;
}

/* ---- [2] TABLES ---- */

/* Reads the numbers of one line; -1: something else, with *at behind the last number. */
static long line_numbers(char *line, double *x, long most, char **at)
{
    long n = 0;
    for (;;) {
        char *end;
        const double v = decimal_read(line, &end);
        *at = line;
        if (end == line || n >= most || !(v - v <= 0))
            return -1;
        x[n++] = v;
        while (*end == ' ')
            end++;
        *at = end;
        if (!*end)
            return n;
        if (*end != ',' && *end != ';' && *end != '\t')
            return -1;
        line = end + 1;
    }
}

/* Says what is wrong with a line. Returns 1. */
static int bad_line(const char *path, size_t number, const char *at, long n, long columns)
{
    if (n < 0 && *at == '"')
        return fail("%s: line %zu: a field in quotes; expected plain numbers between commas", path,
                    number);
    if (n < 0 && (*at == 'n' || *at == 'N' || *at == 'i' || *at == 'I'))
        return fail("%s: line %zu: a value that is not finite", path, number);
    if (n < 0)
        return fail("%s: line %zu: expected a number, found '%.20s'", path, number, at);
    return fail("%s: line %zu: expected %ld numbers between commas, found %ld", path, number,
                columns, n);
}

/* Goes through the rows of a table; x NULL: counts rows and columns, else copies them. */
static int scan_table(const char *path, char *file, size_t bytes, double *line_of, double *x,
                      size_t *rows, long *columns)
{
    char *line = file + (strncmp(file, DATA_MARK, 3) ? 0 : 3), *end, *at;
    size_t number = 0;
    *rows = 0;
    for (; line < file + bytes; line = end + 1) {
        char kept;
        long n;
        end = line + strcspn(line, "\n");
        kept = *end;
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = ' ';
        at = line;
        n = line[strspn(line, " ")] ? line_numbers(line, line_of, MOST_COLUMNS, &at) : 0;
        number++;
        /* the first line may be a heading, and lines may be empty */
        if ((number == 1 && n < 0) || !n) {
            *end = kept;
            continue;
        }
        if (n < 1 || (*columns && n != *columns))
            return bad_line(path, number, at, n, *columns);
        *end = kept;
        *columns = n;
        if (x)
            memcpy(x + *rows * (size_t)n, line_of, (size_t)n * sizeof *x);
        ++*rows;
    }
    return 0;
}

/* Whether a line of a table can be a sample: with its answer, or without. */
static int fits_columns(const source *s, size_t columns)
{
    if (!s->elements)
        return s->rank == 1;
    return columns == s->elements || columns == s->elements + 1;
}

/* Finds the shape of a sample that is a line of a table, and takes a size that is open from it. */
static void shape_line(source *s, size_t columns)
{
    if (!fits_columns(s, columns)) {
        const int alone = s->alone;
        shape_sample(s, 1);
        if (!fits_columns(s, columns))
            shape_sample(s, alone);
    }
    if (!s->elements && s->rank == 1)
        s->elements = (size_t)(s->dim[0] = (int64_t)columns);
}

/* Reads a table of numbers. One column more than the input has elements is the answers. */
static int open_table(source *s)
{
    size_t bytes, rows, i, k;
    char *file = (char *)output_read(s->file, &bytes);
    double *line, *x = NULL;
    long columns = 0;
    int bad;
    if (!file)
        return fail("%s: %s", s->file, strerror(errno));
    line = (double *)allocate(MOST_COLUMNS, sizeof *line);
    bad = scan_table(s->file, file, bytes, line, NULL, &rows, &columns) || set_samples(s, rows);
    if (!bad) {
        x = (double *)allocate(rows, (size_t)columns * sizeof *x);
        bad = scan_table(s->file, file, bytes, line, x, &rows, &columns);
    }
    if (!bad)
        shape_line(s, (size_t)columns);
    if (!bad && (size_t)columns != s->elements && (size_t)columns != s->elements + 1) {
        bad = fail("%s: expected %zu numbers a line, or one more, found %ld", s->file, s->elements,
                   columns);
    }
    if (!bad) {
        s->row = (float *)allocate(rows, s->elements * sizeof *s->row);
        for (i = 0; i < rows; i++) {
            for (k = 0; k < s->elements; k++)
                s->row[i * s->elements + k] = (float)x[i * (size_t)columns + k];
        }
    }
    if (!bad && (size_t)columns > s->elements && !data.own) {
        data.own = (double *)allocate(rows, sizeof *data.own);
        data.own_answers = 1;
        data.own_file = s->file;
        for (i = 0; i < rows; i++)
            data.own[i] = x[i * (size_t)columns + s->elements];
    }
    s->kind = SOURCE_ROWS;
    free(file);
    free(line);
    free(x);
    return bad;
}

/* ---- [3] ARRAYS ---- */

/* Opens an array; the file's bytes are the caller's to free. */
static int open_npy(const char *path, npy *a, unsigned char **file)
{
    size_t bytes;
    *file = output_read(path, &bytes);
    if (!*file)
        return fail("%s: %s", path, strerror(errno));
    if (bytes > 4 && !memcmp(*file, "PK\3\4", 4))
        return fail("%s: a .npz archive; save the array by numpy.save as .npy", path);
    if (npy_read(a, *file, bytes))
        return fail("%s: %s", path, a->message);
    return 0;
}

/* Compares the shape of an array from dimension `from` on with that of a sample, and takes sizes
   that are open from it. */
static int fits_sample(source *s, int from)
{
    const npy *a = &s->array;
    int k;
    if ((int)a->dims - from != s->rank)
        return 0;
    for (k = 0; k < s->rank; k++) {
        if (s->dim[k] >= 0 && (size_t)s->dim[k] != a->shape[k + from])
            return 0;
    }
    for (k = 0; k < s->rank; k++)
        s->dim[k] = (int64_t)a->shape[k + from];
    return 1;
}

/* An array of inputs without a batch has one dimension more than the file declares. */
static int fits_alone(source *s)
{
    const int alone = s->alone;
    shape_sample(s, 1);
    if (fits_sample(s, 1))
        return 1;
    shape_sample(s, alone);
    return 0;
}

/* Appends sizes to a list that begins with a bracket, with commas between them. */
static void add_sizes(char *text, size_t bytes, const int64_t *dim, int rank)
{
    size_t n = strlen(text);
    int k;
    for (k = 0; k < rank && n < bytes - 24; k++) {
        const char *comma = text[n - 1] == '(' ? "" : ", ";
        n += dim[k] < 0 ? (size_t)snprintf(text + n, bytes - n, "%sany", comma)
                        : (size_t)snprintf(text + n, bytes - n, "%s%lld", comma, (long long)dim[k]);
    }
}

static int refuse_shape(const source *s)
{
    const onnx_declared *d = &data.graph->value[s->value].declared;
    char expected[200] = "(samples", whole[200] = "", found[200] = "(";
    int64_t dim[NPY_DIMS];
    int k;
    add_sizes(expected, sizeof expected, s->dim, s->rank);
    if (!s->alone && d->dim[0] > 1) {
        strcpy(whole, "), or, for one sample a run, (samples");
        add_sizes(whole, sizeof whole, d->dim, d->rank);
    }
    for (k = 0; k < (int)s->array.dims; k++)
        dim[k] = (int64_t)s->array.shape[k];
    add_sizes(found, sizeof found, dim, (int)s->array.dims);
    return fail("%s: input '%s': expected an array %s%s), found %s)", s->file, input_name(s),
                expected, whole, found);
}

/* A sample that is a vector in the array and something else of the same size in the model. */
static int fits_flat(const source *s)
{
    const npy *a = &s->array;
    return a->dims >= 1 && s->elements && a->shape[0] && a->count == a->shape[0] * s->elements;
}

/* Returns the rows of the table that a value of token ids is looked up in, or 0. */
static size_t vocabulary_of(const onnx_graph *g, int value, int depth)
{
    int i, k;
    for (i = 0; i < g->top.nodes && depth < 16; i++) {
        const onnx_node *n = g->top.node + i;
        const int first = n->inputs ? n->input[0] : -1;
        size_t found;
        if (onnx_is(&n->op, "Gather") && n->inputs > 1 && n->input[1] == value && first >= 0
            && g->value[first].constant >= 0)
            return (size_t)g->constant[g->value[first].constant].dim[0];
        if (first != value || !n->outputs
            || !(onnx_is(&n->op, "Cast") || onnx_is(&n->op, "Identity")
                 || onnx_is(&n->op, "Reshape") || onnx_is(&n->op, "Unsqueeze")))
            continue;
        for (k = 0; k < n->outputs; k++) {
            found = n->output[k] >= 0 ? vocabulary_of(g, n->output[k], depth + 1) : 0;
            if (found)
                return found;
        }
    }
    return 0;
}

size_t data_vocabulary(const onnx_graph *graph, int value)
{
    return vocabulary_of(graph, value, 0);
}

/* Checks that token ids are below the vocabulary of the table in which they are looked up. */
static int check_tokens(const source *s)
{
    const size_t vocabulary = onnx_is_whole(s->type) ? data_vocabulary(data.graph, s->value) : 0;
    size_t k;
    for (k = 0; k < s->array.count && vocabulary; k++) {
        const double id = npy_at(&s->array, k);
        if (!(id >= 0 && id < (double)vocabulary) || id - floor(id) > 0)
            return fail("%s: element %zu: expected token ids from 0 to %zu, found %g", s->file, k,
                        vocabulary - 1, id);
    }
    return 0;
}

const char *data_unscaled(void) { return data.unscaled; }

static int open_array(source *s)
{
    const int is_float = onnx_is_float(s->type);
    double least = 0, most = 0;
    size_t k;
    int i, is_bytes;
    if (open_npy(s->file, &s->array, &s->bytes))
        return 1;
    if (!s->array.count)
        return fail("%s: it is empty", s->file);
    is_bytes = s->array.type == NPY_U8;
    s->kind = SOURCE_ARRAY;
    if (!fits_sample(s, 1) && !fits_alone(s) && !fits_flat(s))
        return refuse_shape(s);
    for (s->elements = 1, i = 0; i < s->rank; i++)
        s->elements *= (size_t)s->dim[i];
    if (is_bytes && s->type == ONNX_F32 && !option.normalised && !option.raw) {
        return fail("%s: bytes, but input '%s' takes floats: %s", s->file, input_name(s),
                    advice(ADVICE_SCALE_BYTES));
    }
    data.scaled |= is_bytes && s->type == ONNX_F32;
    s->by_pixel = is_bytes && s->type == ONNX_F32 && option.normalised;
    for (k = 0; s->by_pixel && k < 3 * 256; k++)
        s->pixel[k / 256][k % 256] =
            (float)(((double)(k % 256) / 255 - option.mean[k / 256]) / option.std[k / 256]);
    if (!is_bytes && option.normalised && data.sources == 1) {
        return fail("%s: not bytes, so its values are used as they are: --mean and --std are for "
                    "images and for arrays of bytes",
                    s->file);
    }
    if (check_tokens(s))
        return 1;
    for (k = 0; k < s->array.count && is_float && !is_bytes; k++) {
        const double x = npy_at(&s->array, k);
        if (!(x - x <= 0))
            return fail("%s: element %zu is %s", s->file, k, x < 0 || x > 0 ? "infinite" : "NaN");
        least = fmin(least, x);
        most = fmax(most, x);
    }
    if (!is_bytes && !option.raw && least >= 0 && most > 127 && most <= 255)
        data.unscaled = s->file;
    s->once = data.sources > 1 && s->array.shape[0] == 1;
    return s->once ? 0 : set_samples(s, s->array.shape[0]);
}

/* The same array for every run: it has exactly the shape that the file declares. */
static int open_same(source *s, const onnx_declared *d)
{
    int k;
    if (open_npy(s->file, &s->array, &s->bytes))
        return 1;
    if ((int)s->array.dims != d->rank)
        return 0;
    for (k = 0; k < d->rank; k++) {
        if (d->dim[k] >= 0 && (size_t)d->dim[k] != s->array.shape[k])
            return 0;
    }
    s->kind = SOURCE_SAME;
    s->rank = d->rank;
    for (k = 0; k < d->rank; k++)
        s->dim[k] = (int64_t)s->array.shape[k];
    s->elements = s->array.count;
    return 0;
}

/* ---- [4] IMAGES ---- */

/* The size of a dimension: what the file declares or, where it leaves it open, what --size gives.
 */
static size_t size_of(int64_t declared, size_t given)
{
    if (declared >= 0 && (size_t)declared != given)
        return (size_t)declared;
    data.sized = given > 0;
    return given;
}

/* Finds channels, rows and columns of the images that an input takes: (channels, rows, columns),
   (rows, columns, channels), or a vector. Sizes that are open become those of --size, or 0. */
static void find_image_shape(source *s)
{
    const int64_t *d = s->dim;
    const int first_is_colour = d[0] == 1 || d[0] == 3;
    int rows = 1;
    s->channels = 3;
    s->rows = s->columns = DATA_SIDE;
    s->vector = s->rank == 1;
    s->last = s->rank == 3 && !first_is_colour && (d[2] == 1 || d[2] == 3);
    if (s->rank != 3)
        return;
    rows = s->last ? 0 : 1;
    s->channels = (size_t)(d[s->last ? 2 : 0] < 0 ? 3 : d[s->last ? 2 : 0]);
    s->rows = size_of(d[rows], option.size[0]);
    s->columns = size_of(d[rows + 1], option.size[1]);
}

/* Reads images in folders of classes or, where there are none, in one folder. */
static int read_images(source *s, const char *program, int *labelled)
{
    int missing = data_read_as(&s->set, s->file, program, s->channels, s->rows, s->columns);
    *labelled = !missing;
    if (missing == DATA_NO_CLASSES)
        missing = data_read_pictures(&s->set, s->file, s->channels, s->rows, s->columns);
    return missing ? fail("%s", s->set.error) : 0;
}

static int source_reads(const void *user, const char *path)
{
    return data_reads((const data_set *)user, path);
}

/* Takes classes or targets of a data set. */
static void take_set_labels(const source *s)
{
    const data_set *set = &s->set;
    const size_t all = set->train + set->test;
    size_t i;
    data.own = (double *)allocate(all, sizeof *data.own);
    data.own_answers = 1;
    data.own_file = s->file;
    for (i = 0; i < all; i++) {
        const int test = i >= set->train;
        const size_t at = test ? i - set->train : i;
        const unsigned char *y = test ? set->test_y : set->train_y;
        const float *t = test ? set->test_target : set->train_target;
        data.own[i] =
            set->classes ? (double)y[at] : (double)t[at] * set->target_deviation + set->target_mean;
    }
}

/* Opens a folder of images, or a table whose columns are standardised. */
static int open_set(source *s, const char *program)
{
    const onnx_declared *d = &data.graph->value[s->value].declared;
    size_t k, b;
    int labelled, i;
    if (d->rank == 3 && (d->dim[0] == 1 || d->dim[0] == 3 || d->dim[2] == 1 || d->dim[2] == 3))
        shape_sample(s, 1);
    find_image_shape(s);
    if (!s->rows || !s->columns)
        return fail("input '%s' leaves the size of its images open: give --size ROWS,COLUMNS",
                    input_name(s));
    if (s->rank != 1 && s->rank != 3)
        return fail("input '%s' takes no images: expected (channels, rows, columns), found %d "
                    "dimensions of a sample",
                    input_name(s), s->rank);
    if (s->rows > MOST_SIDE || s->columns > MOST_SIDE || (s->channels != 1 && s->channels != 3))
        return fail("input '%s': images of %zu x %zu pixels with %zu channels; expected 1 or 3 "
                    "channels and at most %d pixels each way, or an array",
                    input_name(s), s->rows, s->columns, s->channels, MOST_SIDE);
    if (read_images(s, program, &labelled))
        return 1;
    if (*s->set.note)
        fprintf(stderr, "reluize: %s\n", s->set.note);
    if (s->rank == 3
        && (s->set.channels != s->channels || s->set.height != s->rows
            || s->set.width != s->columns))
        return fail("%s: its images have %zu x %zu pixels and %zu channels, and input '%s' takes "
                    "%zu x %zu and %zu: only PNG, JPEG and other image files are made to fit",
                    s->file, s->set.height, s->set.width, s->set.channels, input_name(s), s->rows,
                    s->columns, s->channels);
    s->channels = s->set.channels;
    s->rows = s->set.height;
    s->columns = s->set.width;
    if (s->rank == 3) {
        s->dim[s->last ? 2 : 0] = (int64_t)s->channels;
        s->dim[s->last ? 0 : 1] = (int64_t)s->rows;
        s->dim[s->last ? 1 : 2] = (int64_t)s->columns;
    } else if (s->dim[0] < 0) {
        s->dim[0] = (int64_t)(s->channels * s->rows * s->columns);
    }
    for (s->elements = 1, i = 0; i < s->rank; i++)
        s->elements *= (size_t)s->dim[i];
    if (s->elements != s->channels * s->rows * s->columns)
        return fail("input '%s' takes %zu values a sample, the data have %zu x %zu x %zu "
                    "(channels, rows, columns)",
                    input_name(s), s->elements, s->channels, s->rows, s->columns);
    for (k = 0; k < 3; k++) {
        for (b = 0; b < 256; b++)
            s->pixel[k][b] =
                option.standard
                    ? s->set.value[k][b]
                    : (float)(((double)b * (option.raw ? 1 : 1 / 255.0) - option.mean[k])
                              / option.std[k]);
    }
    s->kind = SOURCE_IMAGES;
    data.by_folder = 1;
    data.scaled = 1;
    if (labelled && !data.own)
        take_set_labels(s);
    output_inputs(source_reads, &s->set);
    return set_count(s, s->set.train, s->set.test);
}

/* ---- [5] TEXTS ---- */

/* Numbers the bytes of a text as tokens. */
static int number_bytes(const source *s, const unsigned char *text, size_t bytes, size_t vocabulary,
                        int32_t *number)
{
    unsigned char seen[256];
    size_t i, different = 0;
    memset(seen, 0, sizeof seen);
    for (i = 0; i < bytes; i++)
        seen[text[i]] = 1;
    for (i = 0; i < 256; i++) {
        number[i] = (int32_t)(vocabulary == 256 ? i : different);
        different += seen[i];
    }
    if (vocabulary == 256 || different == vocabulary)
        return 0;
    return fail("%s: a text of %zu different characters, but the network's vocabulary is %zu: give "
                "token ids as an array, FILE.npy",
                s->file, different, vocabulary);
}

/* Makes samples of a sequence of tokens. A sample is a window of as many tokens as the input takes,
   and its answers are the tokens that follow each of them. */
static int take_windows(source *s, const int32_t *token, size_t tokens)
{
    const size_t size = s->elements, windows = tokens ? (tokens - 1) / size : 0;
    size_t i;
    if (set_samples(s, windows))
        return 1;
    s->token = (int32_t *)allocate(windows, size * sizeof *s->token);
    data.own = (double *)allocate(windows, size * sizeof *data.own);
    data.own_answers = size;
    data.own_file = s->file;
    for (i = 0; i < windows * size; i++) {
        s->token[i] = token[i];
        data.own[i] = (double)token[i + 1];
    }
    if (data.count[TEST] > MOST_WINDOWS)
        data.count[TEST] = MOST_WINDOWS;
    return 0;
}

/* Reads a text as tokens that are its characters. */
static int open_characters(source *s, size_t vocabulary)
{
    size_t bytes, i;
    int32_t number[256], *token;
    unsigned char *text = output_read(s->file, &bytes);
    int bad;
    if (!text)
        return fail("%s: %s", s->file, strerror(errno));
    token = (int32_t *)allocate(bytes, sizeof *token);
    bad = number_bytes(s, text, bytes, vocabulary, number);
    for (i = 0; i < bytes && !bad; i++)
        token[i] = number[text[i]];
    bad = bad || take_windows(s, token, bytes);
    s->kind = SOURCE_TOKENS;
    free(token);
    free(text);
    return bad;
}

/* A token of the vocabulary: its letters in words.file. */
typedef struct {
    const char *text;
    size_t length;
    int32_t id;
} word;

/* The vocabulary of --vocabulary, sorted; the ids of its special tokens are -1 where it has none.
   With `pieces`, a word that it does not have is divided into the longest pieces that it has, of
   which all but the first begin with ## (WordPiece). With `lower`, it has no capital letter outside
   of special tokens, and texts are read as small letters. */
static struct {
    char *file;
    word *sorted;
    size_t count;
    int pieces, lower;
    int32_t unknown, padding, begin, end;
} words;

static int compare_words(const void *a, const void *b)
{
    const word *x = (const word *)a, *y = (const word *)b;
    const size_t n = x->length < y->length ? x->length : y->length;
    const int order = memcmp(x->text, y->text, n);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Returns the id of a token, or -1. `inner`: of the piece ##text. */
static int32_t find_word(const char *text, size_t length, int inner)
{
    char piece[2 + LONGEST_WORD] = "##";
    word key;
    const word *found;
    if (length + 2 > sizeof piece)
        return -1;
    memcpy(piece + 2, text, length);
    key.text = inner ? piece : piece + 2;
    key.length = inner ? length + 2 : length;
    key.id = 0;
    found = (const word *)bsearch(&key, words.sorted, words.count, sizeof key, compare_words);
    return found ? found->id : -1;
}

/* Returns the id of the first of some spellings that the vocabulary has, or -1. */
static int32_t find_special(const char *const spelling[3])
{
    int32_t id = -1;
    int i;
    for (i = 0; i < 3 && id < 0; i++)
        id = find_word(spelling[i], strlen(spelling[i]), 0);
    return id;
}

/* Reads the vocabulary, which may be smaller than that of the network. */
static int read_vocabulary(size_t vocabulary)
{
    static const char *const unknown[3] = { "[UNK]", "<unk>", "<UNK>" },
                             *const padding[3] = { "[PAD]", "<pad>", "<PAD>" },
                             *const begin[3] = { "[CLS]", "<cls>", "<s>" },
                             *const end[3] = { "[SEP]", "<sep>", "</s>" };
    size_t bytes, lines = 0, i;
    char *at;
    words.file = (char *)output_read(option.vocabulary, &bytes);
    if (!words.file)
        return fail("%s: %s", option.vocabulary, strerror(errno));
    for (i = 0; i < bytes; i++)
        lines += words.file[i] == '\n' || i + 1 == bytes;
    if (!lines || lines > vocabulary) {
        return fail("%s: %zu tokens, but the network's vocabulary is %zu", option.vocabulary, lines,
                    vocabulary);
    }
    words.sorted = (word *)allocate(lines, sizeof *words.sorted);
    words.lower = 1;
    for (at = words.file; words.count < lines; words.count++) {
        word *w = words.sorted + words.count;
        w->text = at;
        w->length = strcspn(at, "\r\n");
        w->id = (int32_t)words.count;
        at += strcspn(at, "\n") + 1;
        words.pieces |= w->length > 2 && !memcmp(w->text, "##", 2);
        for (i = 0; i < w->length && *w->text != '[' && *w->text != '<'; i++) {
            if (w->text[i] >= 'A' && w->text[i] <= 'Z')
                words.lower = 0;
        }
    }
    qsort(words.sorted, words.count, sizeof *words.sorted, compare_words);
    words.unknown = find_special(unknown);
    words.padding = find_special(padding);
    words.begin = find_special(begin);
    words.end = find_special(end);
    if (words.begin < 0 || words.end < 0)
        words.begin = words.end = -1;
    return 0;
}

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* ASCII's characters that are neither letters nor digits: each is a word. */
static int is_punctuation(char c)
{
    return (c > 32 && c < 48) || (c > 57 && c < 65) || (c > 90 && c < 97) || (c > 122 && c < 127);
}

/* Writes the tokens of one word, at most `most`, and returns how many there are, or -1 if it has a
   token that the vocabulary lacks. */
static long word_tokens(const char *text, size_t length, int32_t *token, size_t most)
{
    size_t from = 0, n;
    long count = 0;
    while (from < length) {
        int32_t id = -1;
        n = length - from;
        if (words.pieces && n > LONGEST_WORD)
            n = LONGEST_WORD;
        for (; n && id < 0; n--) {
            id = find_word(text + from, n, from > 0);
            if (id >= 0 || !words.pieces)
                break;
        }
        if (id < 0) {
            if (words.unknown < 0)
                return -1;
            if (most)
                *token = words.unknown;
            return most > 0;
        }
        if ((size_t)count < most)
            token[count++] = id;
        from += n;
    }
    return count;
}

/* Writes the tokens of a text, at most `most`, and returns how many there are, or -1. The text may
   become one of small letters. */
static long text_tokens(const source *s, char *text, size_t length, int32_t *token, size_t most)
{
    size_t i = 0, n, k;
    long count = 0, more;
    while (i < length) {
        if (is_space(text[i])) {
            i++;
            continue;
        }
        for (n = 1; i + n < length && !is_punctuation(text[i]) && !is_punctuation(text[i + n])
                    && !is_space(text[i + n]);)
            n++;
        for (k = i; words.lower && k < i + n; k++) {
            if (text[k] >= 'A' && text[k] <= 'Z')
                text[k] = (char)(text[k] + 32);
        }
        more = word_tokens(text + i, n, token + count, most - (size_t)count);
        if (more < 0) {
            fail("%s: the vocabulary has neither '%.*s' nor a token for unknown words, [UNK] or "
                 "<unk>",
                 s->file, (int)(n < 60 ? n : 60), text + i);
            return -1;
        }
        count += more;
        i += n;
    }
    return count;
}

/* Writes the tokens of a line as one sample: between those of begin and end, if the vocabulary has
   them, cut or padded to `size`. */
static int take_line(const source *s, char *text, size_t length, int32_t *token, size_t number)
{
    const size_t size = s->elements, around = words.begin >= 0 && size > 2 ? 1 : 0;
    long count = text_tokens(s, text, length, token + around, size - 2 * around);
    size_t end;
    if (count < 0)
        return 1;
    end = (size_t)count + around;
    if (around) {
        token[0] = words.begin;
        token[end++] = words.end;
    }
    if (end < size && words.padding < 0) {
        return fail("%s: line %zu has %zu tokens, the network takes %zu, and the vocabulary has no "
                    "[PAD] or <pad>",
                    s->file, number, end, size);
    }
    while (end < size)
        token[end++] = words.padding;
    return 0;
}

/* Reads sample number `sample` from a line, CLASS<tab>TEXT or, without labels, TEXT. */
static int read_line(source *s, char *line, size_t length, size_t number, size_t sample)
{
    char *text = line;
    if (data.own) {
        const double answer = decimal_read(line, &text);
        if (text == line || *text != '\t')
            return fail("%s: line %zu: expected a class 0, 1, 2, ..., a tab and a text", s->file,
                        number);
        data.own[sample] = answer;
        text++;
    }
    return take_line(s, text, length - (size_t)(text - line), s->token + sample * s->elements,
                     number);
}

/* Reads lines that are samples; they have classes if the first one has a tab. */
static int read_lines(source *s, char *text, size_t bytes)
{
    size_t samples = 0, number = 0;
    int labelled = 0;
    char *line;
    for (line = text; line < text + bytes; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\r\n");
        if (length && !samples)
            labelled = memchr(line, '\t', length) != NULL;
        samples += length > 0;
    }
    if (set_samples(s, samples))
        return 1;
    s->token = (int32_t *)allocate(samples, s->elements * sizeof *s->token);
    if (labelled) {
        data.own = (double *)allocate(samples, sizeof *data.own);
        data.own_answers = 1;
        data.own_file = s->file;
    }
    samples = 0;
    for (line = text; line < text + bytes; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\r\n");
        number++;
        if (length && read_line(s, line, length, number, samples))
            return 1;
        samples += length > 0;
    }
    return 0;
}

/* Reads a text whose tokens are words of --vocabulary: lines with or without classes, or, where the
   model predicts each next token, windows of all of it. */
static int open_words(source *s, size_t vocabulary, int language)
{
    size_t bytes;
    char *text = (char *)output_read(s->file, &bytes);
    int32_t *token;
    long count;
    int bad = 1;
    if (!text)
        return fail("%s: %s", s->file, strerror(errno));
    if (read_vocabulary(vocabulary)) {
        free(text);
        return 1;
    }
    if (!language) {
        bad = read_lines(s, text, bytes);
    } else {
        token = (int32_t *)allocate(bytes, sizeof *token);
        count = text_tokens(s, text, bytes, token, bytes);
        bad = count < 0 || take_windows(s, token, (size_t)count);
        free(token);
    }
    s->kind = SOURCE_TOKENS;
    free(words.file);
    free(words.sorted);
    free(text);
    return bad;
}

/* Returns whether the first output of the model has an answer for each token: (N, tokens, kinds).
 */
static int is_language(const onnx_graph *g)
{
    const onnx_declared *d = g->top.outputs ? &g->value[g->top.output[0]].declared : NULL;
    return d && d->rank == 3;
}

static int open_text(source *s)
{
    const size_t vocabulary = data_vocabulary(data.graph, s->value);
    if (!vocabulary)
        return fail("%s: input '%s' is not looked up in a table of tokens; give an array, FILE.npy",
                    s->file, input_name(s));
    if (!s->rank)
        shape_sample(s, 1);
    if (s->rank != 1)
        return fail("%s: input '%s': expected (samples, tokens), found %d dimensions of a sample",
                    s->file, input_name(s), s->rank);
    s->dim[0] = (int64_t)size_of(s->dim[0], option.size[0]);
    if (!s->dim[0])
        s->dim[0] = OPEN_TOKENS;
    s->elements = (size_t)s->dim[0];
    return option.vocabulary ? open_words(s, vocabulary, is_language(data.graph))
                             : open_characters(s, vocabulary);
}

/* ---- [6] LABELS ---- */

/* Copies the answers of the samples, in the order of the file, to the parts. */
static void take_labels(const double *from, size_t answers)
{
    size_t i, k;
    int part, zero = 0, one = 0;
    labels.answers = answers;
    labels.classes = labels.two = 1;
    for (part = 0; part < 2; part++) {
        labels.value[part] =
            (double *)allocate(data.count[part], answers * sizeof *labels.value[part]);
        for (i = 0; i < data.count[part]; i++) {
            for (k = 0; k < answers; k++) {
                const double x = from[place_of(part, i) * answers + k];
                labels.value[part][i * answers + k] = x;
                labels.classes &= x >= 0 && x <= 1e9 && !(x - floor(x) > 0);
                labels.two &= !(x < 0 || x > 0) || !(x < 1 || x > 1);
                zero |= !(x < 0 || x > 0);
                one |= !(x < 1 || x > 1);
            }
        }
    }
    labels.two &= zero && one;
}

/* Reads --labels FILE.npy. */
static int read_labels(void)
{
    const size_t samples = data.count[TRAIN] + data.count[TEST];
    unsigned char *file = NULL;
    double *all;
    npy a;
    size_t i, k, answers;
    if (open_npy(option.labels, &a, &file)) {
        free(file);
        return 1;
    }
    if (!a.dims || a.shape[0] != samples) {
        free(file);
        return fail("%s: expected %zu labels, one for each sample, found %zu", option.labels,
                    samples, a.dims ? a.shape[0] : (size_t)1);
    }
    for (i = 0; i < a.count; i++) {
        const double x = npy_at(&a, i);
        if (!(x - x <= 0)) {
            free(file);
            return fail("%s: element %zu is %s", option.labels, i,
                        x < 0 || x > 0 ? "infinite" : "NaN");
        }
    }
    answers = samples ? a.count / samples : 0;
    all = (double *)allocate(a.count, sizeof *all);
    for (i = 0; i < samples; i++) {
        for (k = 0; k < answers; k++)
            all[i * answers + k] = npy_at(&a, npy_place(&a, i * answers + k));
    }
    take_labels(all, answers);
    free(all);
    free(file);
    return 0;
}

int data_check_labels(size_t classes)
{
    const char *file = option.labels ? option.labels : data.own_file;
    size_t i;
    int part;
    for (part = 0; part < 2; part++) {
        for (i = 0; i < data.count[part] * labels.answers; i++) {
            if (labels.value[part][i] >= (double)classes)
                return fail("%s: sample %zu: its label is %g, but the network has %zu classes, "
                            "from 0 to %zu",
                            file, place_of(part, i / labels.answers), labels.value[part][i],
                            classes, classes - 1);
        }
    }
    return 0;
}

/* ---- [7] OPENING ---- */

/* Finds what --data says for an input; NULL: nothing. An option without a name is for the first
   input that none names. */
static const data_option *option_of(const onnx_graph *g, int k)
{
    const deploy_span *name = &g->value[g->top.input[k]].name;
    int i, j;
    for (i = 0; i < option.inputs; i++) {
        const data_option *o = option.data + i;
        if (o->name && o->name_bytes == name->n && !memcmp(o->name, name->p, name->n))
            return o;
    }
    for (j = 0; j < k; j++) {
        const data_option *o = option_of(g, j);
        if (o && !o->name)
            return NULL;
    }
    for (i = 0; i < option.inputs; i++) {
        if (!option.data[i].name)
            return option.data + i;
    }
    return NULL;
}

/* Sets type and shape of a sample from the declaration. */
static int begin_source(source *s, const onnx_declared *d)
{
    s->type = d->type;
    if (d->rank < 0)
        return fail("input '%s': the file declares no shape", input_name(s));
    shape_sample(s, !d->rank);
    return 0;
}

/* Returns the dimension behind the first that has, by its name, the samples of another input, as
   that of a recurrent layer's state; 0: there is none. */
static int samples_dimension(const onnx_declared *d)
{
    int i, k;
    for (k = 0; k < data.graph->top.inputs; k++) {
        const onnx_declared *other = &data.graph->value[data.graph->top.input[k]].declared;
        for (i = 1; i < d->rank && other->rank > 0 && other->dim[0] < 0; i++) {
            const deploy_span *name = d->dim_name + i;
            if (d->dim[i] < 0 && name->n && name->n == other->dim_name[0].n
                && !memcmp(name->p, other->dim_name[0].p, name->n))
                return i;
        }
    }
    return 0;
}

static int open_source(source *s, const onnx_declared *d, const char *program)
{
    size_t samples;
    int at;
    const int array = ends_in(s->file, ".npy") || ends_in(s->file, ".npz"),
              table = ends_in(s->file, ".csv"), tokens = onnx_is_whole(s->type);
    if (option.vocabulary && (!tokens || array))
        return fail("--vocabulary is for a network that reads tokens, and for a text");
    if (option.standard && (array || tokens))
        return fail("%s: --standard is for images and tables", s->file);
    if (option.normalised && data.sources == 1
        && ((array && s->type != ONNX_F32) || tokens || table))
        return fail("%s: --mean and --std are for images", s->file);
    if (array) {
        /* An input without a batch of its own receives one array in every run. */
        if (data.sources > 1 && (!d->rank || d->dim[0] != -1)) {
            if (open_same(s, d))
                return 1;
            samples = data.count[TRAIN] + data.count[TEST];
            at = samples_dimension(d);
            if (s->kind == SOURCE_SAME && at && samples > 1 && s->array.shape[at] == samples)
                return fail("%s: input '%s': the %zu samples are in dimension %d: give an array "
                            "with the samples first",
                            s->file, input_name(s), samples, at);
            if (s->kind == SOURCE_SAME && (!d->rank || s->array.shape[0] != samples))
                return 0;
            free(s->bytes);
            s->bytes = NULL;
            s->kind = SOURCE_NONE;
            shape_sample(s, !d->rank);
        }
        return open_array(s);
    }
    if (tokens)
        return open_text(s);
    if (table && !option.standard)
        return open_table(s);
    return open_set(s, program);
}

/* Checks the names of --data. */
static int check_names(const onnx_graph *g)
{
    int i, k;
    for (i = 0; i < option.inputs; i++) {
        const data_option *o = option.data + i;
        int found = !o->name;
        for (k = 0; k < g->top.inputs && !found; k++) {
            const deploy_span *name = &g->value[g->top.input[k]].name;
            found = o->name_bytes == name->n && !memcmp(o->name, name->p, name->n);
        }
        if (!found) {
            char names[400];
            size_t n = 0;
            names[0] = 0;
            for (k = 0; k < g->top.inputs && n < sizeof names - 80; k++) {
                deploy_text(names + n, sizeof names - n, k ? ", %t" : "%t",
                            &g->value[g->top.input[k]].name);
                n = strlen(names);
            }
            return fail("--data %.*s=...: there is no such input; the model has %s",
                        (int)o->name_bytes, o->name, names);
        }
    }
    return 0;
}

int data_fix_batch(size_t samples)
{
    int k;
    data.fixed = samples;
    for (k = 0; k < 2; k++) {
        data.count[k] -= data.count[k] % samples;
        if (!data.count[k])
            return fail("the model takes %zu samples a run, which are more than there are",
                        samples);
    }
    return 0;
}

/* Finds the batch that the file fixes; all inputs with samples must agree. An input that has none
   takes one sample a run. */
static int find_batch(void)
{
    size_t fixed = 0;
    int k;
    for (k = 0; k < data.sources; k++) {
        const source *s = data.source + k;
        const int64_t batch = s->alone ? 1 : data.graph->value[s->value].declared.dim[0];
        if (s->kind == SOURCE_SAME || batch < 0)
            continue;
        if (fixed && fixed != (size_t)batch)
            return fail("input '%s': it takes %lld samples a run, another input %zu", input_name(s),
                        (long long)batch, fixed);
        fixed = (size_t)batch;
    }
    return fixed ? data_fix_batch(fixed) : 0;
}

int data_open_all(const onnx_graph *g, const char *program)
{
    int k, pass;
    data.graph = g;
    data.sources = g->top.inputs;
    if (!g->top.inputs || g->top.inputs > MOST_INPUTS)
        return fail("%s: expected 1 to %d inputs, found %d", option.model, MOST_INPUTS,
                    g->top.inputs);
    if (check_names(g))
        return 1;
    /* Inputs whose first dimension is open come first: they say how many samples there are. */
    for (pass = 0; pass < 2; pass++) {
        for (k = 0; k < g->top.inputs; k++) {
            source *s = data.source + k;
            const onnx_declared *d = &g->value[g->top.input[k]].declared;
            const data_option *o = option_of(g, k);
            const int open =
                d->rank < 0 || (d->rank && d->dim[0] < 0) || g->top.inputs == 1 || (o && !o->name);
            if (open != !pass)
                continue;
            s->value = g->top.input[k];
            if (!o)
                return fail("input '%s' has no data: give --data %s=FILE", input_name(s),
                            input_name(s));
            s->file = o->file;
            if (begin_source(s, d) || open_source(s, d, program))
                return 1;
        }
    }
    if (!data.count[TEST])
        return fail("no input has more than one sample");
    if (option.normalised && !data.scaled)
        return fail("--mean and --std are for images and for arrays of bytes, which no input has");
    if (option.size[0] && !data.sized)
        return fail("--size %zu,%zu: no input leaves the size of its images or texts open, and "
                    "arrays bring their own",
                    option.size[0], option.size[1]);
    if (find_batch())
        return 1;
    if (option.labels)
        return read_labels();
    if (data.own)
        take_labels(data.own, data.own_answers);
    return 0;
}

void data_close_all(void)
{
    int k;
    for (k = 0; k < data.sources; k++) {
        source *s = data.source + k;
        if (s->kind == SOURCE_IMAGES)
            data_free(&s->set);
        free(s->row);
        free(s->token);
        free(s->bytes);
    }
    for (k = 0; k < 2; k++)
        free(labels.value[k]);
    free(data.own);
}

size_t data_batch_size(size_t wanted)
{
    if (data.fixed)
        return data.fixed;
    return wanted < data.count[TEST] ? wanted : data.count[TEST];
}

int data_batch_is_fixed(void) { return data.fixed != 0; }

int data_has_batch(void)
{
    int k, has = 0;
    for (k = 0; k < data.sources; k++)
        has |= data.source[k].kind != SOURCE_SAME && !data.source[k].alone;
    return has;
}

/* ---- [8] TENSORS ---- */

static void image_floats(const source *s, size_t place, float *to)
{
    const size_t pixels = s->rows * s->columns, size = s->channels * pixels;
    const size_t train = s->set.train;
    const unsigned char *from;
    size_t c, p;
    if (!s->set.train_x) {
        const float *row = place < train ? s->set.train_row + place * size
                                         : s->set.test_row + (place - train) * size;
        memcpy(to, row, size * sizeof *to);
        return;
    }
    from = place < train ? s->set.train_x + place * size : s->set.test_x + (place - train) * size;
    for (c = 0; c < s->channels; c++) {
        for (p = 0; p < pixels; p++)
            to[s->last ? p * s->channels + c : c * pixels + p] = s->pixel[c][from[c * pixels + p]];
    }
}

/* The channel of element k of a sample, of images, or 0. */
static size_t channel_of(const source *s, size_t k)
{
    if (s->rank == 3 && (s->dim[0] == 3 || s->dim[0] == 1))
        return k / ((size_t)s->dim[1] * (size_t)s->dim[2]);
    return s->rank == 3 && s->dim[2] == 3 ? k % 3 : 0;
}

/* Bytes of images are scaled as the options say. */
static void array_floats(const source *s, size_t place, float *to)
{
    size_t k;
    npy_floats(to, &s->array, place * s->elements, s->elements);
    for (k = 0; s->by_pixel && k < s->elements; k++)
        to[k] = s->pixel[channel_of(s, k)][(size_t)to[k]];
}

/* Copies sample i of a part, in the order of the file's elements. */
static void copy_floats(const source *s, int part, size_t i, float *to)
{
    const size_t place = s->once ? 0 : place_of(part, i);
    size_t e;
    if (s->kind == SOURCE_IMAGES) {
        image_floats(s, place, to);
    } else if (s->kind == SOURCE_ROWS) {
        memcpy(to, s->row + place * s->elements, s->elements * sizeof *to);
    } else if (s->kind == SOURCE_ARRAY) {
        array_floats(s, place, to);
    } else {
        for (e = 0; e < s->elements; e++)
            to[e] = (float)s->token[place * s->elements + e];
    }
}

size_t data_elements(int k) { return data.source[k].elements; }

int data_image(int k, size_t *channels, size_t *rows, size_t *columns, int *last)
{
    const source *s = data.source + k;
    if (s->kind == SOURCE_IMAGES && s->set.train_x) {
        *channels = s->channels;
        *rows = s->rows;
        *columns = s->columns;
        *last = s->last;
        return 1;
    }
    if (s->rank != 3 || s->kind != SOURCE_ARRAY)
        return 0;
    *last = s->dim[0] != 1 && s->dim[0] != 3 && (s->dim[2] == 1 || s->dim[2] == 3);
    *channels = (size_t)s->dim[*last ? 2 : 0];
    *rows = (size_t)s->dim[*last ? 0 : 1];
    *columns = (size_t)s->dim[*last ? 1 : 2];
    return 1;
}

/* Fills place `at` of a tensor with sample i. */
static void fill_sample(const source *s, onnx_tensor *x, size_t at, int part, size_t i,
                        float *floats)
{
    const size_t first = (s->once ? 0 : place_of(part, i)) * s->elements;
    size_t e;
    if (onnx_is_float(s->type)) {
        copy_floats(s, part, i, floats);
        onnx_floats_to(x, at * s->elements, s->elements, floats);
        return;
    }
    for (e = 0; e < s->elements; e++)
        onnx_tensor_set_real(x, at * s->elements + e,
                             s->kind == SOURCE_TOKENS
                                 ? (double)s->token[first + e]
                                 : npy_at(&s->array, npy_place(&s->array, first + e)));
}

int data_tensors(onnx_run *run, onnx_tensor **in, int part, const uint32_t *order, size_t first,
                 size_t samples)
{
    size_t i;
    int k;
    for (k = 0; k < data.sources; k++) {
        const source *s = data.source + k;
        int64_t dim[ONNX_MOST_RANK];
        float *floats;
        if (s->kind == SOURCE_SAME) {
            in[k] = onnx_tensor_make(run, s->type, s->rank, s->dim);
            for (i = 0; in[k] && i < s->elements; i++)
                onnx_tensor_set_real(in[k], i, npy_at(&s->array, i));
        } else {
            dim[0] = (int64_t)samples;
            memcpy(dim + !s->alone, s->dim, (size_t)s->rank * sizeof *dim);
            in[k] = onnx_tensor_make(run, s->type, s->rank + !s->alone, dim);
            floats = (float *)allocate(s->elements, sizeof *floats);
            for (i = 0; in[k] && i < samples; i++)
                fill_sample(s, in[k], i, part, order ? order[first + i] : first + i, floats);
            free(floats);
        }
        if (!in[k]) {
            while (k-- > 0) {
                onnx_tensor_free(in[k]);
                in[k] = NULL;
            }
            return fail("%s", run->message);
        }
    }
    return 0;
}
