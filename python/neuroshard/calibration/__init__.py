"""Training steps on the ranks of a process group: random models, times of their steps under several
plans, and what these say of a cost model's predictions (`neuroshard calibrate`)."""

from neuroshard.calibration._engines import Tables, open_plan
from neuroshard._machine_file import TERMS
from neuroshard.calibration._machine import (UNCORRECTED, Fit, Run, errors_of,
                                             exposed_exchange_ms, fit, fit_line, fit_scale, interval,
                                             left_out, of_ranks, ratios_of, run_of)
from neuroshard.calibration._measure import Steps, card_bytes, measure_steps
from neuroshard.calibration._models import draw_ids, make_task
from neuroshard.calibration._run import Settings, calibrate

__all__ = ["TERMS", "UNCORRECTED", "Fit", "Run", "Settings", "Steps", "Tables", "calibrate",
           "card_bytes", "draw_ids", "errors_of", "exposed_exchange_ms", "fit", "fit_line", "fit_scale",
           "interval", "left_out", "make_task", "measure_steps", "of_ranks", "open_plan",
           "ratios_of", "run_of"]
