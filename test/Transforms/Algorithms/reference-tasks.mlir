// The 24 reference tasks (test/reference_search) as IR: the published search reaches the published
// costs to 1e-9.

// DEFINE: %{task} =
// DEFINE: %{search} = neuroshard-translate --workload-to-mlir %S/../../reference_search/task_%{task}.json | \
// DEFINE:   neuroshard-opt --neuroshard-plan="algorithm=published objective=published cost-model=reference"

// REDEFINE: %{task} = 00
// RUN: %{search} | FileCheck %s -DCOST=18.7679307
// REDEFINE: %{task} = 01
// RUN: %{search} | FileCheck %s -DCOST=13.6484585
// REDEFINE: %{task} = 02
// RUN: %{search} | FileCheck %s -DCOST=10.9377223
// REDEFINE: %{task} = 03
// RUN: %{search} | FileCheck %s -DCOST=18.1176956
// REDEFINE: %{task} = 04
// RUN: %{search} | FileCheck %s -DCOST=30.8096945
// REDEFINE: %{task} = 05
// RUN: %{search} | FileCheck %s -DCOST=7.65037704
// REDEFINE: %{task} = 06
// RUN: %{search} | FileCheck %s -DCOST=23.1462336
// REDEFINE: %{task} = 07
// RUN: %{search} | FileCheck %s -DCOST=6.61165849
// REDEFINE: %{task} = 08
// RUN: %{search} | FileCheck %s -DCOST=12.6425337
// REDEFINE: %{task} = 09
// RUN: %{search} | FileCheck %s -DCOST=15.2320242
// REDEFINE: %{task} = 10
// RUN: %{search} | FileCheck %s -DCOST=8.22061575
// REDEFINE: %{task} = 11
// RUN: %{search} | FileCheck %s -DCOST=9.19495320
// REDEFINE: %{task} = 12
// RUN: %{search} | FileCheck %s -DCOST=12.4412531
// REDEFINE: %{task} = 13
// RUN: %{search} | FileCheck %s -DCOST=27.0644319
// REDEFINE: %{task} = 14
// RUN: %{search} | FileCheck %s -DCOST=14.5384816
// REDEFINE: %{task} = 15
// RUN: %{search} | FileCheck %s -DCOST=13.3217866
// REDEFINE: %{task} = 16
// RUN: %{search} | FileCheck %s -DCOST=11.3305535
// REDEFINE: %{task} = 17
// RUN: %{search} | FileCheck %s -DCOST=6.74459046
// REDEFINE: %{task} = 18
// RUN: %{search} | FileCheck %s -DCOST=21.9374429
// REDEFINE: %{task} = 19
// RUN: %{search} | FileCheck %s -DCOST=9.32059910
// REDEFINE: %{task} = 20
// RUN: %{search} | FileCheck %s -DCOST=22.6697666
// REDEFINE: %{task} = 21
// RUN: %{search} | FileCheck %s -DCOST=12.9991657
// REDEFINE: %{task} = 22
// RUN: %{search} | FileCheck %s -DCOST=10.6833468
// REDEFINE: %{task} = 23
// RUN: %{search} | FileCheck %s -DCOST=8.01800474

// CHECK: neuroshard.plan @plan {{.*}}predicted_cost_ms = [[COST]]
