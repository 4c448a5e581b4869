/*===- planner.c - Planning from JSON to JSON in a C program --------------===*/

// RUN: %c_programs/neuroshard-c-planner | FileCheck %s

#include "neuroshard-c/Planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKLOAD(TOPOLOGY, ROWS)                                               \
  "{\"schema\": \"neuroshard.workload.v1\", \"batch\": {\"global_size\": "     \
  "64}," TOPOLOGY " \"tables\": [{\"name\": \"user\", \"rows\": " ROWS         \
  ", \"dim\": 64},"                                                            \
  "              {\"name\": \"item\", \"rows\": 1000, \"dim\": 16}],"          \
  " \"features\": [{\"name\": \"u\", \"table\": \"user\"},"                    \
  "                {\"name\": \"i\", \"table\": \"item\"}]}"
#define TWO_CPUS "\"topology\": \"2xCPU@1GiB\","

static const char *const kWorkload = WORKLOAD(TWO_CPUS, "1000000");
static const char *const kOptions =
    "{\"cost_model\": \"roofline\", \"algorithm\": \"size\", \"seed\": 7}";

static void show(const char *name, int32_t status, char *result, char *error) {
  printf("%s: %d result %s error %s\n", name, (int)status,
         result ? "yes" : "no", error ? error : "no");
  neuroshardStringFree(result);
  neuroshardStringFree(error);
}

static void plan(const char *name, const char *workload, const char *options) {
  char *result = (char *)"untouched", *error = (char *)"untouched";
  int32_t status =
      neuroshardPlan(workload, options, NULL, NULL, &result, &error);
  show(name, status, result, error);
}

static void verify(const char *name, const char *workload, const char *json) {
  char *error = (char *)"untouched";
  int32_t status = neuroshardVerifyPlan(workload, json, &error);
  show(name, status, NULL, error);
}

/* The text of the plan in a result: its last field. */
static char *planIn(char *result) {
  char *begin = strstr(result, "\"plan\": {");
  char *end = strrchr(result, '}');
  if (!begin || !end) {
    printf("no plan in the result\n");
    exit(1);
  }
  *end = 0;
  return begin + strlen("\"plan\": ");
}

static int32_t stop(const NeuroShardProgress *progress, void *userData) {
  if (progress->structBytes < sizeof *progress || !progress->phase)
    printf("wrong progress\n");
  ++*(int *)userData;
  return 0;
}

static void planAndVerify(void) {
  char *result = NULL;
  int32_t status =
      neuroshardPlan(kWorkload, kOptions, NULL, NULL, &result, NULL);
  printf("status %d\n%s\n", (int)status, result);
  char *json = planIn(result);
  verify("sound", kWorkload, json);
  verify("other workload", WORKLOAD(TWO_CPUS, "999"), json);
  verify("no topology", WORKLOAD("", "1000000"), json);
  verify("no plan", kWorkload, "{}");
  neuroshardStringFree(result);
}

static void stopEarly(void) {
  char workload[65536], *result = NULL, *error = NULL;
  int calls = 0;
  char *end = workload;
  end += sprintf(end, "{\"schema\": \"neuroshard.workload.v1\", \"batch\": "
                      "{\"global_size\": 4096}, \"topology\": \"16xH200\","
                      "\"features\": [], \"tables\": [");
  for (int i = 0; i < 300; ++i)
    end += sprintf(end, "%s{\"name\": \"t%d\", \"rows\": %d, \"dim\": 64}",
                   i ? ", " : "", i, 1000 + 977 * i);
  sprintf(end, "]}");
  int32_t status =
      neuroshardPlan(workload, NULL, stop, &calls, &result, &error);
  printf("stopped: %d result %s\n", (int)status, result ? "yes" : "no");
  printf("progress %s\n", calls >= 1 ? "was told" : "was not told");
  neuroshardStringFree(result);
  neuroshardStringFree(error);
}

int main(void) {
  // CHECK: version 0.1.0
  printf("version %s\n", neuroshardVersion());
  neuroshardStringFree(NULL);

  // CHECK:      status 0
  // CHECK-NEXT: {
  // CHECK-NEXT:  "cost_ms": {{[0-9.]+}},
  // CHECK:       "breakdown": {
  // CHECK:       "plan": {
  // CHECK-NEXT:   "schema": "neuroshard.plan.v1",
  // CHECK:        "seed": 7
  // CHECK:      sound: 0 result no error no
  // CHECK:      other workload: 2 result no error {
  // CHECK-NEXT:  "limit": "bad input",
  // CHECK:      no topology: 2 result no error {
  // CHECK:       "message": "topology: the workload has none",
  // CHECK:      no plan: 2 result no error {
  // CHECK:       "message": "missing field 'schema'"
  planAndVerify();

  // CHECK:      infeasible: 1 result no error {
  // CHECK-NEXT:  "limit": "device memory",
  // CHECK-NEXT:  "message": "the 2 tables need {{.*}}GiB
  // CHECK-NEXT:  "details": [
  // CHECK:       "advice": "use at least 48 such devices
  plan("infeasible", WORKLOAD(TWO_CPUS, "100000000"), NULL);

  // CHECK: topology given: 0 result yes error no
  // CHECK: other topology: 2 result no error {
  // CHECK:  "message": "options.topology: the workload has another topology"
  plan("topology given", WORKLOAD("", "1000"), "{\"topology\": \"2xCPU\"}");
  plan("other topology", kWorkload, "{\"topology\": \"3xCPU@1GiB\"}");

  // CHECK: bad JSON: 2 result no error {
  // CHECK:  "message": {{.*}}line 1, column
  // CHECK: bad options: 2 result no error {
  // CHECK:  "message": "options: {{.*}}line 1, column
  // CHECK: wrong options: 2 result no error {
  // CHECK:  "message": "options.threads: expected a whole number in [0, 1024],
  // CHECK:  "details": [
  // CHECK:  "options.colour: unknown field"
  // CHECK: no such model: 2 result no error {
  // CHECK:  "message": "options.cost_model: expected auto, roofline
  // CHECK: not UTF-8: 2 result no error {
  plan("bad JSON", "{\"schema\": ", NULL);
  plan("bad options", kWorkload, "[1,");
  plan("wrong options", kWorkload, "{\"threads\": -1, \"colour\": \"red\"}");
  plan("no such model", kWorkload, "{\"cost_model\": \"oracle\"}");
  plan("not UTF-8", "{\"schema\": \"\xff\"}", NULL);

  // CHECK: no workload: 2 result no error {
  // CHECK:  "message": "workloadJson: expected a text, got a null pointer",
  // CHECK: no place for the result: 2
  // CHECK: no place for the error: 2
  // CHECK: nothing to verify: 2 result no error {
  // CHECK:  "message": "planJson: expected a text, got a null pointer",
  plan("no workload", NULL, NULL);
  printf("no place for the result: %d\n",
         (int)neuroshardPlan(kWorkload, NULL, NULL, NULL, NULL, NULL));
  char *result = NULL;
  printf("no place for the error: %d\n",
         (int)neuroshardPlan("", NULL, NULL, NULL, &result, NULL));
  verify("nothing to verify", kWorkload, NULL);

  // CHECK: stopped: 0 result yes
  // CHECK: progress was told
  stopEarly();
  return 0;
}
