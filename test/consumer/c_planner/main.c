/*===- main.c - Plans two tables in a project that knows no C++ -----------===*/

#include <neuroshard-c/Planner.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  const char *workload =
      "{\"schema\": \"neuroshard.workload.v1\","
      " \"batch\": {\"global_size\": 64}, \"topology\": \"2xCPU\","
      " \"tables\": [{\"name\": \"user\", \"rows\": 1000000, \"dim\": 64},"
      "              {\"name\": \"item\", \"rows\": 900000, \"dim\": 64}],"
      " \"features\": [{\"name\": \"u\", \"table\": \"user\"},"
      "                {\"name\": \"i\", \"table\": \"item\"}]}";
  char *result = NULL, *error = NULL;
  int status = neuroshardPlan(workload, NULL, NULL, NULL, &result, &error);
  if (status != NEUROSHARD_OK) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  /* The installed models of the class CPU are found from the library. */
  int shipped = strstr(result, "\"cost_model\": \"cpu_compute") != NULL;
  printf("planned by %s models\n", shipped ? "the shipped" : "other");
  neuroshardStringFree(result);
  return 0;
}
