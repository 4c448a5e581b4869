"""All modules that are raised, compiled and compared."""

import raising_models_linalg
import raising_models_loops
import raising_models_stablehlo
import raising_models_torch

MODELS = [*raising_models_linalg.MODELS, *raising_models_loops.MODELS,
          *raising_models_torch.MODELS, *raising_models_stablehlo.MODELS]
