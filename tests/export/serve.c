/* Loads a SavedModel through TensorFlow's C API, feeds texts and prints scores.
 *
 * serve MODEL_FOLDER INPUT_OPERATION OUTPUT_OPERATION OUTPUT_INDEX [OP_LIBRARY ...]
 *
 * Standard input: a 4-byte count, then for each text a 4-byte length and its bytes (both little
 * endian). Standard output: the rank, the dimensions, then the float32 values, one a line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

static TF_Status *status;

static void check(const char *what) {
  if (TF_GetCode(status) != TF_OK) {
    fprintf(stderr, "%s: %s\n", what, TF_Message(status));
    exit(1);
  }
}

static uint32_t read_number(void) {
  uint32_t number;
  if (fread(&number, 4, 1, stdin) != 1) {
    fprintf(stderr, "standard input ended early\n");
    exit(1);
  }
  return number;
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "too few arguments\n");
    return 2;
  }
  status = TF_NewStatus();
  for (int i = 5; i < argc; ++i) {
    TF_LoadLibrary(argv[i], status);
    check(argv[i]);
  }

  TF_Graph *graph = TF_NewGraph();
  TF_SessionOptions *options = TF_NewSessionOptions();
  const char *tags[] = {"serve"};
  TF_Session *session =
      TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
  check("load");

  int64_t count = read_number();
  TF_Tensor *texts = TF_AllocateTensor(TF_STRING, &count, 1, count * sizeof(TF_TString));
  TF_TString *strings = TF_TensorData(texts);
  for (int64_t i = 0; i < count; ++i) {
    uint32_t length = read_number();
    char *bytes = malloc(length + 1);
    if (length && fread(bytes, length, 1, stdin) != 1) return 1;
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], bytes, length);
    free(bytes);
  }

  TF_Output input = {TF_GraphOperationByName(graph, argv[2]), 0};
  TF_Output output = {TF_GraphOperationByName(graph, argv[3]), atoi(argv[4])};
  if (!input.oper || !output.oper) {
    fprintf(stderr, "no operation %s or %s\n", argv[2], argv[3]);
    return 1;
  }
  TF_Tensor *scores = NULL;
  TF_SessionRun(session, NULL, &input, &texts, 1, &output, &scores, 1, NULL, 0, NULL, status);
  check("run");

  int rank = TF_NumDims(scores);
  printf("%d\n", rank);
  for (int i = 0; i < rank; ++i) printf("%lld\n", (long long)TF_Dim(scores, i));
  const float *values = TF_TensorData(scores);
  for (int64_t i = 0; i < TF_TensorElementCount(scores); ++i) printf("%.9g\n", values[i]);

  TF_DeleteTensor(texts);
  TF_DeleteTensor(scores);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteSessionOptions(options);
  TF_DeleteStatus(status);
  return 0;
}
