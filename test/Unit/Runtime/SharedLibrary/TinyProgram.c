/*===- TinyProgram.c - A program library by hand --------------------------===*/

/* A program library as the compiler makes them, for SharedLibraryTest: one
   table of 3 rows x 4 columns, one sum lookup with i64 ids. */

#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/HostProgramABI.h"

static void forward(const void *weights, const void *ids,
                    const int64_t *offsets, const float *sample_weights,
                    float *out, int64_t out_stride, int64_t begin,
                    int64_t end) {
  (void)sample_weights;
  for (int64_t b = begin; b < end; ++b)
    for (int64_t c = 0; c < 4; ++c) {
      float sum = 0;
      for (int64_t j = offsets[b]; j < offsets[b + 1]; ++j)
        sum += ((const float *)weights)[((const int64_t *)ids)[j] * 4 + c];
      out[b * out_stride + c] = sum;
    }
}

static const nsrt_slot_entry slots[] = {{4, 16, 0, 0, 0, 0, 0, 0}};
static const nsrt_lookup_entry lookups[] = {{0, 8, 1, 0, forward, 0}};
const nsrt_program neuroshard_program = {
    NSRT_PROGRAM_VERSION, 1, 1, 0, slots, lookups};

/* args: device, ids, pointer to the number of ids, offsets, pointer to their
   number, out. */
void nsrt_invoke_forward(void **args) {
  nsrt_device *device = (nsrt_device *)args[0];
  nsrt_routed *routed =
      nsrt_route(device, 0, args[1], *(int64_t *)args[2],
                 (const int64_t *)args[3], *(int64_t *)args[4], 0);
  nsrt_partials *partials = nsrt_lookup(device, routed);
  nsrt_results_start(device, routed, partials);
  nsrt_result_wait(device, routed, partials, 0, 0, args[5]);
  nsrt_partials_release(device, partials);
  nsrt_routed_release(device, routed);
}
