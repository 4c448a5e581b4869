//===- PythonCostModel.cpp - A user's own cost model ----------------------===//

#include "PythonCostModel.h"

#include "Errors.h"
#include "neuroshard/Planner/Memory.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

namespace nb = nanobind;
using namespace neuroshard;
using namespace neuroshard::python;

namespace {

const char *nameOf(Direction direction) {
  switch (direction) {
  case Direction::Input:
    return "input";
  case Direction::Forward:
    return "forward";
  case Direction::Backward:
    return "backward";
  }
  return "";
}

/// The repr() of a value, or its type if that fails, as for whole numbers of
/// thousands of digits.
std::string describe(nb::handle value) {
  nb::object shown = nb::steal(PyObject_ASCII(value.ptr()));
  if (shown.is_valid())
    return nb::cast<std::string>(shown);
  PyErr_Clear();
  std::string text = "a value of type ";
  return text.append(nb::type_name(value.type()).c_str());
}

std::string indexed(const char *what, size_t index) {
  std::string text = what;
  return text.append("[").append(std::to_string(index)).append("]");
}

/// The length of a sequence, -1 for anything else. An array without dimensions
/// is a number, though Python counts it as a sequence.
Py_ssize_t lengthOf(nb::handle item) {
  if (!PySequence_Check(item.ptr()) || PyUnicode_Check(item.ptr()))
    return -1;
  Py_ssize_t size = PySequence_Size(item.ptr());
  PyErr_Clear();
  return size;
}

/// What is wrong with an answer, which itself raised nothing.
struct WrongAnswer {
  std::string message;
};

[[noreturn]] void refuse(const std::string &message) {
  throw WrongAnswer{message};
}

/// Type and text of an exception.
std::string describe(const nb::python_error &error) {
  std::string text = nb::type_name(error.type()).c_str();
  nb::object message = nb::steal(PyObject_Str(error.value().ptr()));
  if (!message.is_valid()) {
    PyErr_Clear();
    return text;
  }
  std::string shown = nb::cast<std::string>(message);
  return shown.empty() ? text : text.append(": ").append(shown);
}

/// The answer in place of a failed model's. Not 0: the search goes on for a
/// while and may divide by it.
constexpr double kDummyMs = 1;

/// Larger times, of more than 30000 years, are refused: their sums lose digits.
constexpr double kMaxMs = 1e15;

} // namespace

PythonCostModel::PythonCostModel(nb::object model, std::string name,
                                 bool monotone, std::string origin,
                                 nb::object topology,
                                 std::shared_ptr<const ShardingProblem> problem)
    : model(std::move(model)), topology(std::move(topology)),
      problem(std::move(problem)), modelName(std::move(name)),
      origin(std::move(origin)), isMonotone(monotone) {
  separates = probe();
  form = separates;
}

/// Asks, and names the model in what goes wrong. Ctrl-C is not the model's.
template <typename Question>
void PythonCostModel::blame(const Question &question) const {
  std::string name = origin.empty() ? modelName : origin;
  try {
    question();
  } catch (const WrongAnswer &wrong) {
    raise("CostModelError", name + ": " + wrong.message);
  } catch (nb::python_error &error) {
    if (origin.empty() || error.matches(PyExc_KeyboardInterrupt))
      throw;
    nb::object type =
        nb::module_::import_("neuroshard.errors").attr("CostModelError");
    std::string message = name + " raised " + describe(error);
    nb::raise_from(error, type, "%s", message.c_str());
  }
}

/// Asks under a lock, since Python may switch threads inside a user's method.
/// Threads that wait for the lock do not hold the GIL.
template <typename Question>
void PythonCostModel::oneAtATime(const Question &question) const {
  std::lock_guard<std::mutex> lock(asking);
  if (hasFailed)
    return;
  nb::gil_scoped_acquire gil;
  try {
    blame(question);
  } catch (...) {
    error = std::current_exception();
    hasFailed = true;
  }
}

void PythonCostModel::rethrow() const {
  if (error)
    std::rethrow_exception(error);
}

/// A set of an empty device costs nothing and is not asked about.
void PythonCostModel::computeMs(std::span<const ShardSet> sets,
                                std::span<ComputeMs> out) const {
  std::vector<ShardSet> asked;
  for (const ShardSet &set : sets)
    if (!set.shards.empty())
      asked.push_back(set);
  std::vector<ComputeMs> times(asked.size(), {kDummyMs, kDummyMs});
  if (!asked.empty())
    oneAtATime([&] { askCompute(asked, times); });
  size_t next = 0;
  for (size_t i = 0; i < sets.size(); ++i)
    out[i] = sets[i].shards.empty() ? ComputeMs() : times[next++];
}

std::vector<double>
PythonCostModel::communicationMs(const Traffic &traffic,
                                 std::span<const double> startSkewsMs,
                                 Direction direction) const {
  std::vector<double> times(traffic.dims.size(), kDummyMs);
  oneAtATime(
      [&] { times = askCommunication(traffic, startSkewsMs, direction); });
  return times;
}

nb::object PythonCostModel::wrap(const ShardSet &set) const {
  nb::list shards;
  for (const ShardWork *work : set.shards) {
    OwnedShardWork owned{*work, problem, std::nullopt, 0};
    if (work->access) {
      owned.reuse = work->access->reuse;
      owned.reuseBatch = work->access->batch;
    }
    owned.work.access = nullptr;
    shards.append(nb::cast(std::move(owned)));
  }
  return nb::cast(PythonShardSet{set.deviceClass, std::move(shards)});
}

/// The answer as a list of the expected length. Asks it for at most one item
/// more, as it may be without end.
nb::list PythonCostModel::listOf(nb::handle answer, size_t expected,
                                 const std::string &what,
                                 const std::string &each) const {
  if (!nb::hasattr(answer, "__iter__"))
    refuse(what + ": expected a list with one time per " + each +
           ", got: " + describe(answer));
  nb::list times;
  for (nb::handle time : answer) {
    times.append(time);
    if (times.size() > expected)
      break;
  }
  if (times.size() == expected)
    return times;
  Py_ssize_t size = PyObject_Size(answer.ptr());
  PyErr_Clear();
  std::string got = std::to_string(times.size());
  if (times.size() > expected)
    got = size >= 0 ? std::to_string(size) : std::string("more");
  refuse(what + ": expected " + std::to_string(expected) + " times, one per " +
         each + ", got: " + got);
}

/// The answer as a list with an item per set.
nb::list PythonCostModel::timesOf(std::span<const ShardSet> sets) const {
  nb::list asked;
  for (const ShardSet &set : sets)
    asked.append(wrap(set));
  nb::object answer = model.attr("compute_ms")(asked);
  return listOf(answer, sets.size(), "compute_ms", "shard set");
}

void PythonCostModel::askCompute(std::span<const ShardSet> sets,
                                 std::span<ComputeMs> out) const {
  nb::list times = timesOf(sets);
  for (size_t i = 0; i < sets.size(); ++i)
    out[i] = readTime(times[i], i);
}

/// A pair (forward, backward), or one number.
ComputeMs PythonCostModel::readTime(nb::handle item, size_t index) const {
  std::string what = indexed("compute_ms: time", index);
  Py_ssize_t size = lengthOf(item);
  if (size >= 0 && size != 2)
    refuse(what + ": expected (forward, backward) or one number, got: " +
           describe(item));
  bool pair = size == 2;
  if (form && *form != pair)
    refuse(what + (pair ? ": a pair, where" : ": one number, where") +
           " the first answer was " +
           (pair ? "one number" : "(forward, backward)") +
           "; return the same form always");
  if (!pair)
    return {readNumber(item, what), 0};
  return {readNumber(item[0], what + " forward"),
          readNumber(item[1], what + " backward")};
}

double PythonCostModel::readNumber(nb::handle item,
                                   const std::string &what) const {
  double number = PyFloat_AsDouble(item.ptr());
  if (number == -1 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) &&
        !PyErr_ExceptionMatches(PyExc_ValueError) &&
        !PyErr_ExceptionMatches(PyExc_OverflowError))
      throw nb::python_error();
    PyErr_Clear();
    refuse(what +
           ": expected a number of milliseconds, got: " + describe(item));
  }
  if (!std::isfinite(number) || number < 0)
    refuse(what + ": expected a finite number of milliseconds, at least " +
           "0, got: " + describe(item));
  if (number > kMaxMs)
    refuse(what +
           ": expected at most 1e15 milliseconds, got: " + describe(item));
  return number;
}

std::vector<double>
PythonCostModel::askCommunication(const Traffic &traffic,
                                  std::span<const double> startSkewsMs,
                                  Direction direction) const {
  nb::object type = nb::module_::import_("neuroshard.costs").attr("Traffic");
  nb::object shown =
      type(nb::cast(traffic.dims), nb::cast(traffic.allBytesOut()),
           nb::cast(traffic.allBytesIn()), topology);
  nb::object skews = nb::none();
  if (!startSkewsMs.empty())
    skews =
        nb::cast(std::vector<double>(startSkewsMs.begin(), startSkewsMs.end()));
  nb::object answer =
      model.attr("communication_ms")(shown, nb::arg("skews") = skews,
                                     nb::arg("direction") = nameOf(direction));
  nb::list times =
      listOf(answer, traffic.dims.size(), "communication_ms", "device");
  std::vector<double> result;
  for (size_t i = 0; i < times.size(); ++i)
    result.push_back(
        readNumber(times[i], indexed("communication_ms: time", i)));
  return result;
}

/// Whether the time of the first table, whole and alone, is a pair.
bool PythonCostModel::probe() const {
  const Table &table = problem->tables.front();
  Shard whole{table.name, table.name, 0, table.rows, 0, table.dim, {0}};
  ShardWork work =
      describeShard(*problem, 0, featuresOfTables(*problem).front(), whole);
  ShardSet set{findDeviceClass(problem->topology,
                               problem->topology.devices.front().deviceClass),
               {&work}};
  bool isPair = false;
  blame([&] {
    nb::object first = timesOf({&set, 1})[0];
    readTime(first, 0);
    isPair = lengthOf(first) == 2;
  });
  return isPair;
}
