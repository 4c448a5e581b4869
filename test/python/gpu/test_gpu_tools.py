"""The sort library and the scripts of tools/gpu, as far as they can be tested without a GPU."""

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from neuroshard import cuda
from support import artifact

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools" / "gpu"))
import building  # noqa: E402
import carry_fbgemm  # noqa: E402
import check_sass  # noqa: E402
import inputs  # noqa: E402
import points  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402
import sample_sets  # noqa: E402

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
SORT = BUILD / "lib" / "libneuroshard_cuda_sort.so"
INVALID_VALUE = 1

needs_sort = pytest.mark.skipif(not SORT.exists(),
                                reason=f"{SORT.name} is not built here: no nvcc, or sanitizers")


# The Python layer


def test_structs_are_those_of_the_header(tmp_path):
    structs = {"nsc_info": cuda.Info, "nsc_memory": cuda.Memory, "nsc_slot": cuda.Slot,
               "nsc_lookup": cuda.Lookup, "nsc_part": cuda.Part, "nsc_norms": cuda.Norms,
               "nsc_slot_memory": cuda._SlotMemory, "nsc_options": cuda._Options,
               "nsc_input": cuda._Input, "nsc_output": cuda._Output,
               "nsc_gradient": cuda.Gradient}
    fields = [(name, field) for name, struct in structs.items() for field, _ in struct._fields_]
    prints = "".join(f'  printf("%zu %zu\\n", offsetof({name}, {field}), '
                     f"sizeof((({name} *)0)->{field}));\n" for name, field in fields)
    (tmp_path / "layout.c").write_text(
        '#include "neuroshard/RuntimeCuda/CudaABI.h"\n#include <stddef.h>\n#include <stdio.h>\n'
        f"int main(void) {{\n{prints}  return 0;\n}}\n")
    subprocess.run(["gcc", "-I", ROOT / "include", tmp_path / "layout.c", "-o",
                    tmp_path / "layout"], check=True)
    listing = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True)
    ours = [(getattr(structs[name], field).offset, getattr(structs[name], field).size)
            for name, field in fields]
    theirs = [tuple(map(int, line.split())) for line in listing.stdout.splitlines()]
    assert dict(zip(fields, ours)) == dict(zip(fields, theirs))


def test_every_function_of_the_header_is_there():
    header = (ROOT / "include/neuroshard/RuntimeCuda/CudaABI.h").read_text()
    code = re.sub(r"//.*|/\*.*?\*/", "", header)
    assert set(re.findall(r"\b(nsc_\w+)\(", code)) == set(cuda._SIGNATURES)


# The sort library


def sort_function():
    function = ctypes.CDLL(str(SORT)).nsg_sort
    pointer = ctypes.c_void_p
    function.argtypes = [pointer, ctypes.POINTER(ctypes.c_size_t), pointer, ctypes.c_int32,
                         ctypes.c_int32, *[pointer] * 6, ctypes.c_int64, pointer]
    function.restype = ctypes.c_int
    return function


def call_sort(key_bytes, end_bit, count, memory=None):
    """(status, temp_bytes) of a call whose pointers are all `memory`."""
    size = ctypes.c_size_t(0)
    status = sort_function()(memory, ctypes.byref(size), memory, key_bytes, end_bit,
                             *[memory] * 6, count, None)
    return status, size.value


@needs_sort
def test_sort_exports_one_function():
    listing = subprocess.run(["nm", "-D", "--defined-only", str(SORT)], capture_output=True,
                             text=True, check=True).stdout
    assert [line.split()[2] for line in listing.splitlines()] == ["nsg_sort"]


@needs_sort
def test_sort_needs_no_cuda_library():
    listing = subprocess.run(["ldd", str(SORT)], capture_output=True, text=True, check=True).stdout
    assert "cuda" not in listing.replace(SORT.name, "") and "not found" not in listing


@needs_sort
@pytest.mark.parametrize("key_bytes,end_bit", [(4, 1), (4, 32), (8, 64)])
@pytest.mark.parametrize("count", [0, 1, 1000, 2**31 - 1])
def test_sort_reports_sizes_or_an_error(key_bytes, end_bit, count):
    status, size = call_sort(key_bytes, end_bit, count)
    assert status != INVALID_VALUE
    # With a GPU there is a size; without one an error and no crash.
    assert (status == 0) == (size > 0)


@needs_sort
@pytest.mark.parametrize("key_bytes,end_bit,count", [
    (3, 3, 5), (0, 1, 5), (4, 0, 5), (4, 33, 5), (8, 65, 5), (4, 8, -1), (4, 8, 2**31)])
def test_sort_refuses_sizes(key_bytes, end_bit, count):
    memory = ctypes.cast(ctypes.create_string_buffer(64), ctypes.c_void_p)
    assert call_sort(key_bytes, end_bit, count)[0] == INVALID_VALUE
    assert call_sort(key_bytes, end_bit, count, memory)[0] == INVALID_VALUE


# Limits of machine code


def assemble(folder, kernels):
    """A cubin of PTX kernels, (name, declarations, body) each."""
    text = [".version 8.0", ".target sm_90", ".address_size 64"]
    for name, declarations, body in kernels:
        text.append(f".visible .entry {name}(.param .u64 in, .param .u64 out, .param .u32 at) {{\n"
                    f".reg .b64 %p<3>; .reg .f32 %f<4>; .reg .b32 %r<4>;\n{declarations}\n"
                    "ld.param.u64 %p0, [in]; ld.param.u64 %p1, [out]; ld.param.u32 %r0, [at];\n"
                    f"{body}\nret; }}")
    source, cubin = folder / "kernels.ptx", folder / "kernels.cubin"
    source.write_text("\n".join(text) + "\n")
    subprocess.run([check_sass.find_tool("ptxas"), "-arch=sm_90", source, "-o", cubin], check=True)
    return cubin


COPY = ("nsg_lookup", "", "ld.global.nc.v4.f32 {%f0, %f1, %f2, %f3}, [%p0];\n"
        "st.global.v4.f32 [%p1], {%f0, %f1, %f2, %f3};")
BARRIER = ("nsg_update", ".shared .align 4 .b8 y[128];",
           "st.shared.u32 [y], %r0; bar.sync 0; ld.shared.u32 %r1, [y]; st.global.u32 [%p1], %r1;")
LOCAL = ("nsg_apply", ".local .align 16 .b8 x[64];",
         "mov.u64 %p2, x; cvt.u64.u32 %p0, %r0; add.u64 %p2, %p2, %p0; st.local.u32 [%p2], %r0;\n"
         "bar.warp.sync -1; ld.local.u32 %r1, [x+8]; ld.local.u32 %r2, [x+16];\n"
         "add.u32 %r1, %r1, %r2; st.global.u32 [%p1], %r1;")
UNKNOWN = ("nsg_other", "", "st.global.u32 [%p1], %r0;")


def test_sass_of_a_good_kernel(tmp_path):
    [kernel] = check_sass.inspect(assemble(tmp_path, [COPY]))
    assert dict(kernel.instructions) == {"LDG.128.CONSTANT": 1, "STG.128": 1}
    assert kernel.stack_bytes == kernel.shared_bytes == 0 and kernel.registers > 0
    assert check_sass.violations(kernel) == []


@pytest.mark.parametrize("kernel,expected", [
    (BARRIER, ["bytes of shared memory", "1 barriers"]),
    (LOCAL, ["64 bytes of stack", "instructions on local memory"]),
    (UNKNOWN, ["a kernel without limits"])])
def test_sass_limits_are_found_broken(tmp_path, kernel, expected):
    cubin = assemble(tmp_path, [COPY, kernel])
    done = subprocess.run([sys.executable, ROOT / "tools/gpu/check_sass.py", cubin],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    errors = done.stderr.splitlines()
    assert len(errors) == len(expected)
    for line, text in zip(errors, expected):
        assert line.startswith(f"error: kernels.cubin: {kernel[0]}: ") and text in line


def test_too_many_registers_are_found():
    kernel = check_sass.Kernel("nsg_lookup", registers=129, stack_bytes=0, shared_bytes=0)
    assert check_sass.violations(kernel) == ["nsg_lookup: 129 registers, at most 80 allowed"]


def test_sass_of_no_cubin(tmp_path):
    (tmp_path / "text.cubin").write_text("no machine code")
    done = subprocess.run([sys.executable, ROOT / "tools/gpu/check_sass.py",
                           tmp_path / "text.cubin"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


# Random shard sets for another machine


@pytest.fixture(scope="module")
def set_list(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "sets.safetensors"
    code, messages = artifact.run_tool("neuroshard-collect", "sets", "-o", path, "--device-class",
                                       "H200", "--samples", 25, "--lookups", 2000000,
                                       "--batch-factor", 4, "--seed", 5)
    assert code == 0, messages
    return sample_sets.SetList(path)


def test_listed_sets_have_no_times(set_list):
    assert len(set_list) == 25 and set_list.metadata["measured"] == "false"
    assert set_list.metadata["device_class"] == "H200"
    assert not set_list.columns["sample.forward_ms"].any()
    held_out = set_list.columns["sample.held_out"]
    assert held_out.sum() == 3
    for index in range(25):
        for shard in set_list.shards(index):
            assert (shard["table"] % 5 == 0) == bool(held_out[index])
        assert set_list.batch(index) % (4 * 512) == 0 or len(set_list.shards(index)) > 15


def test_listed_sets_are_programs(set_list, tmp_path):
    """Shards and result rows are those of the list; the compiler takes the text."""
    for index in range(8):
        shards, batch = set_list.shards(index), set_list.batch(index)
        model, plan = sample_sets.model_of(shards, batch)
        ours = [shard for shard in plan.shards if shard.devices == (0,)]
        assert [(s.rows[1], s.cols[1] - s.cols[0]) for s in ours] == \
            [(shard["rows"], shard["width"]) for shard in shards]
        assert len(model.lookups()) == sum(
            group.table["features"] for group in sample_sets.tables_of(shards))
        source = tmp_path / f"{index}.mlir"
        source.write_text(model.text(plan))
        code, messages = artifact.run_tool("neuroshard-opt", source, "-o", os.devnull)
        assert code == 0, messages


def test_ids_repeat_as_listed(set_list):
    """Distinct rows are as many as the list says that a batch reads."""
    generator, compared = torch.Generator().manual_seed(3), 0
    for index in range(6):
        batch = set_list.batch(index)
        for shard in set_list.shards(index):
            count = sum(int(sample_sets.bag_lengths(shard, batch, generator, "cpu").sum())
                        for _ in range(shard["features"]))
            if not 5000 < count < 500000:
                continue
            table = shard["table"]
            measured = shard["lookups"] / batch * float(set_list.columns["pool.batch"][table])
            ids = sample_sets.ReuseIds(set_list.columns["pool.reuse"][table], measured,
                                       shard["rows"], "cpu", 1).draw(count)
            assert int(ids.max()) < shard["rows"] and int(ids.min()) >= 0
            distinct = shard["unique_rows"] * count / shard["lookups"]
            # Below the number of rows; near it, hashing makes some ids collide.
            if distinct < shard["rows"] / 2:
                assert len(ids.unique()) == pytest.approx(distinct, rel=0.1)
                compared += 1
    assert compared >= 5


# What travels


def test_sets_of_a_point_are_not_in_the_cache():
    """Other sets bring several times the cache between two uses of one."""
    for point in points.listed():
        count = inputs.number_of_sets(1, inputs.touched_bytes(point), 1 << 40)
        others = (count - 1) * inputs.touched_bytes(point)
        assert count >= 2 and others >= 2 * (60 << 20), point.name


def fat_binary(entries):
    """(kind, architecture, body) each, as nvcc writes them."""
    packed = b"".join(carry_fbgemm.ENTRY.pack(kind, 0x101, 64, len(body)) + bytes(12)
                      + arch.to_bytes(4, "little") + bytes(32) + body
                      for kind, arch, body in entries)
    return carry_fbgemm.HEADER.pack(carry_fbgemm.MAGIC, 1, 16, len(packed)) + packed


def test_other_machine_code_is_cleared(tmp_path):
    ours = b"x split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta"
    other = b"x split_embedding_backward_codegen_adam_unweighted_kernel_cta"
    helper = b"x split_embedding_backward_codegen_find_long_segments"
    library = b"host" + fat_binary([(2, 90, ours), (2, 80, ours), (1, 90, ours)]) + b"between" \
        + fat_binary([(2, 90, other), (2, 90, helper)]) + carry_fbgemm.MAGIC + b"no header"
    (tmp_path / "one.so").write_bytes(library)
    kept, cleared = carry_fbgemm.clear_library(tmp_path / "one.so", 90)
    expected = library.replace(other, bytes(len(other)))
    first = expected.index(ours) + len(ours)
    expected = expected[:first] + expected[first:].replace(ours, bytes(len(ours)))
    assert (tmp_path / "one.so").read_bytes() == expected
    assert (kept, cleared) == (len(ours) + len(helper), 2 * len(ours) + len(other))


def test_the_runtime_links_from_the_files_that_are_built_there(tmp_path):
    """The list of files is right: they leave nothing open."""
    libraries = {}
    for source in building.sources():
        libraries.setdefault(building.library_of(source), []).append(source)
    objects = []
    for library, files in libraries.items():
        unity = tmp_path / f"{library.name}.cpp"
        unity.write_text("".join(f'#include "{file}"\n' for file in files))
        objects.append(unity.with_suffix(".o"))
        building.call("g++", "-c", *building.flags(Path("/nowhere"), library), "-O0", unity,
                      "-o", objects[-1])
    building.link(objects, tmp_path / building.CUDA)
    ctypes.CDLL(str(tmp_path / building.CUDA))


# The whole script, on the emulator


def run_script(name, *arguments, **variables):
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), **variables}
    return subprocess.run([sys.executable, ROOT / "tools/gpu" / name, *map(str, arguments)],
                          capture_output=True, text=True, check=False, env=environment, timeout=1200)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    if not (BUILD / "lib" / "libneuroshard_emulator.so").exists():
        pytest.skip("the emulator is not built here")
    folder = tmp_path_factory.mktemp("prepared") / "artifacts"
    done = run_script("prepare", "-o", folder, "--build", BUILD, "--dry-run", "--cases", "least")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


in_full = pytest.mark.skipif(not os.environ.get("NEUROSHARD_ALL"),
                             reason="starts many processes; NEUROSHARD_ALL=1 runs it")


# The limits of a run on a GPU are short for a busy machine without one.
LONG = ("--seconds", "1000", "--item-seconds", "1000")


def run_dry(prepared, results, *arguments, faults=""):
    """(process, records) of a dry run."""
    os.environ["NEUROSHARD_GPU_FAULTS"] = faults
    try:
        done = run_script("run_all", "--artifacts", prepared, "-o", results, "--dry-run",
                          *LONG, *arguments)
    finally:
        del os.environ["NEUROSHARD_GPU_FAULTS"]
    return done, json.loads((results / "results.json").read_text())


def test_dry_run_of_everything(prepared, tmp_path):
    done, results = run_dry(prepared, tmp_path / "results")
    assert done.returncode == 0, done.stdout
    found = {name: entry["status"] for name, entry in results["sections"].items()}
    assert found == {name: "done" for name in report.SECTIONS}, done.stdout
    of = results["records"]
    assert len(of["correctness"]) == 3 and len(of["collect"]) == 3 and len(of["memory"]) == 4
    assert not any("error" in record for section in of.values() for record in section.values())
    for point in points.tiny():
        assert {"neuroshard", "torch.nn.EmbeddingBag"} <= set(of["speed"][point.name]["forward_ms"])
    assert of["exchange"]["whole step"]["passed"]
    assert not any(machine["measured"] for machine in results["machines"])
    assert "not measured" in (tmp_path / "results" / "results.md").read_text()
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == \
        ["log.txt", "results.json", "results.md"]
    # A real run must not be mixed with it.
    mixed = run_script("run_all", "--artifacts", prepared, "-o", tmp_path / "results")
    assert mixed.returncode == 1 and "results of a dry run" in mixed.stderr


@in_full
def test_faults_in_every_section(prepared, tmp_path):
    """After any fault the rest of the run goes on."""
    tiny = [point.name for point in points.tiny()]
    faults = (f"speed:{tiny[0]}/torch.nn.EmbeddingBag:crash,speed:{tiny[1]}:memory,"
              f"speed:{tiny[2]}/torch.nn.EmbeddingBag:error,correctness:matrix0_1:spoil,"
              "collect:set0:crash,memory:dlrm_v2_adam_f32_device0:spoil")
    done, results = run_dry(prepared, tmp_path / "results", faults=faults)
    found = {name: entry["status"] for name, entry in results["sections"].items()}
    assert found == {**{name: "done" for name in report.SECTIONS}, "speed": "failed",
                     "correctness": "failed", "collect": "failed", "memory": "failed"}, done.stdout
    of = results["records"]
    assert len(of["correctness"]) == 3 and len(of["collect"]) == 3 and len(of["memory"]) == 4
    for section, name, text in (("correctness", "matrix0_1", "injected: spoil"),
                                ("collect", "set0", "signal 9"),
                                ("memory", "dlrm_v2_adam_f32_device0", "injected: spoil"),
                                ("speed", tiny[1], "out of memory")):
        bad = [item for item, record in of[section].items() if "error" in record]
        assert bad == [name] and text in of[section][name]["error"]
    # Who is left out of a point leaves the others there.
    for name, text in ((tiny[0], "signal 9"), (tiny[2], "injected: error")):
        assert text in of["speed"][name]["errors"]["torch.nn.EmbeddingBag"]
        assert "neuroshard" in of["speed"][name]["forward_ms"]
        assert "torch.nn.EmbeddingBag" not in of["speed"][name]["forward_ms"]
    # Again, from the results alone and with what has failed: nothing else is run twice.
    again, results = run_dry(prepared, tmp_path / "elsewhere", "--again", "--resume",
                             tmp_path / "results" / "results.json", "--sections", "correctness",
                             "collect", "exchange")
    assert again.returncode == 0, again.stdout
    assert "exchange: done before" in again.stdout and "collect: done, " in again.stdout
    assert results["records"]["collect"]["set1"] == of["collect"]["set1"]
    assert "error" not in results["records"]["collect"]["set0"]


@in_full
def test_an_item_that_hangs_is_left_behind(prepared, tmp_path):
    done, results = run_dry(prepared, tmp_path / "results", "--sections", "collect",
                            "--item-seconds", "30", faults="collect:set1:hang")
    assert done.returncode == 1 and "collect: failed" in done.stdout
    found = results["records"]["collect"]
    assert found["set1"]["error"] == "not done after 30.0 s"
    assert "error" not in found["set0"] and "error" not in found["set2"]


@in_full
def test_what_was_found_is_there_after_a_kill(prepared, tmp_path):
    """The whole run is killed within an item; the same command goes on."""
    results = tmp_path / "results"
    command = [sys.executable, ROOT / "tools/gpu/run_all", "--artifacts", prepared, "-o", results,
               "--dry-run", "--sections", "collect"]
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"),
                   "NEUROSHARD_GPU_FAULTS": "collect:set1:hang"}
    process = subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.DEVNULL)
    records_file = Path(f"{results}.work") / "collect.jsonl"
    now = Path(f"{results}.work") / "collect.now"
    end = time.monotonic() + 1000
    while time.monotonic() < end and not (records_file.exists() and now.exists()
                                          and "set1" in now.read_text()):
        time.sleep(0.1)
    process.kill()
    process.wait()
    assert list(records.Records(records_file).items) == ["set0"]
    done, found = run_dry(prepared, results, "--sections", "collect")
    assert done.returncode == 0, done.stdout
    assert list(found["records"]["collect"]) == ["set0", "set1", "set2"]


def test_time_that_is_up_ends_the_run(prepared, tmp_path):
    done, results = run_dry(prepared, tmp_path / "results", "--seconds", "2")
    assert done.returncode == 1
    assert {entry["status"] for entry in results["sections"].values()} == {"cut off"}


def test_a_failing_case_fails_the_run(prepared, tmp_path):
    """Means in place of sums, and sums in place of means."""
    broken = shutil.copytree(prepared, tmp_path / "broken")
    (broken / "cases.json").write_text('["matrix0_1"]')
    path = broken / "cases" / "matrix0_1" / "program0.gpu.json"
    program = json.loads(path.read_text())
    for lookup in program["lookups"]:
        if lookup["mean_variant"] >= 0:
            lookup["variant"], lookup["mean_variant"] = lookup["mean_variant"], lookup["variant"]
    path.write_text(json.dumps(program))
    done = run_script("run_all", "--artifacts", broken, "-o", tmp_path / "results", "--dry-run",
                      *LONG, "--sections", "build", "correctness", NEUROSHARD_CUDA_UNCHECKED="1")
    assert done.returncode == 1 and "correctness: failed" in done.stdout
    assert "failed: matrix0_1" in (tmp_path / "results" / "results.md").read_text()


def test_a_point_runs_for_a_profiler(prepared):
    library = BUILD / "lib" / "libneuroshard_emulator.so"
    done = run_script("programs/run_point.py", prepared, points.tiny()[0].name, "--dry-run",
                      NEUROSHARD_CUDA_DRIVER=str(library))
    assert done.returncode == 0, done.stderr


def test_missing_artifacts_are_one_error(tmp_path):
    done = run_script("run_all", "--artifacts", tmp_path, "-o", tmp_path / "results")
    assert done.returncode == 1 and "tools/gpu/prepare" in done.stderr
    assert "Traceback" not in done.stderr
