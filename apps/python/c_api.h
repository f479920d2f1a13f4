/* The C interface of libtilewright.so, which the Python package calls. Functions that can fail return NULL or a negative number;
   tilewright_error() then tells why. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tilewright_model tilewright_model;

enum { TILEWRIGHT_MAX_RANK = 16 };

/* A tensor. Strides count elements; `data` is the address of the element at index 0 in every dimension. */
typedef struct {
    int32_t dtype; /* tilewright_dtype() */
    int32_t rank;
    int64_t sizes[TILEWRIGHT_MAX_RANK];
    int64_t strides[TILEWRIGHT_MAX_RANK];
    void *data;
} tilewright_tensor;

/* What an output will be: memory of its own, or an input or an earlier output itself. */
typedef struct {
    tilewright_tensor tensor; /* without data */
    int32_t is_input;         /* position of that input, or -1 */
    int32_t is_output;        /* position of that output, or -1 */
} tilewright_output;

/* The calling thread's last error, and whether it was the caller's mistake (1) or a bug (0). */
const char *tilewright_error(int32_t *users_mistake);

/* Number of an element type by PyTorch's name ("bfloat16"), or -1. */
int32_t tilewright_dtype(const char *name);

/* Loads an archive. `options` is a JSON object with the names of lowering/options.h as keys, or NULL. */
tilewright_model *tilewright_load(const char *archive, const char *options);
void tilewright_free(tilewright_model *model);

/* "cpu" or "cuda". */
const char *tilewright_target(const tilewright_model *model);
/* Ordinal of the GPU, or -1. */
int32_t tilewright_device(const tilewright_model *model);
int32_t tilewright_input_count(const tilewright_model *model);
int32_t tilewright_output_count(const tilewright_model *model);
/* "input 0 \"x\"": how messages call an input. Valid until the thread's next call. */
const char *tilewright_input_label(const tilewright_model *model, int32_t input);

/* "x": how the captured program calls it. Likewise; "" for an input that the model has not. */
const char *tilewright_input_name(const tilewright_model *model, int32_t input);

/* Fills `outputs` (tilewright_output_count() of them) for inputs of these sizes. 0, or -1. */
int32_t tilewright_describe(tilewright_model *model, const tilewright_tensor *inputs, int32_t count, tilewright_output *outputs);
/* Runs into outputs of the described sizes and strides. `stream` is a CUstream (NULL: the call returns when the outputs are ready). 0, or
 * -1. */
int32_t tilewright_run(tilewright_model *model, const tilewright_tensor *inputs, int32_t count, const tilewright_tensor *outputs,
                       void *stream);

#ifdef __cplusplus
}
#endif
