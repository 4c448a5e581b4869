"""Draws the learning curve in a placement policy's card.

    python3 tools/neuroshard-train/plot_placement.py models/placement_policy.safetensors \
        docs/images/dreamshard-curve.svg

Needs matplotlib (tools/dev/requirements/plots.txt).
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402

# The same bytes for the same data.
plt.rcParams["svg.hashsalt"] = "neuroshard"


def read_card(path):
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8:8 + length])["__metadata__"]["card"])


def plot(curve, path):
    episodes = [point["episodes"] / 1000 for point in curve]
    figure, cost = plt.subplots(figsize=(7.2, 3.6))
    cost.plot(episodes, [100 * (point["ratio"] - 1) for point in curve], marker="o", markersize=3)
    cost.axhline(0, color="black", linewidth=0.8)
    # The first point, by chance, is far above.
    cost.set(xlabel="episodes, thousands", ylim=(-5, 5),
             ylabel="validation: cost against the\nbest greedy baseline, %")
    cost.grid(alpha=0.3)
    entropy = cost.twinx()
    entropy.plot(episodes, [point["entropy"] for point in curve], color="gray", alpha=0.6)
    entropy.set(ylabel="entropy of a choice (gray)", ylim=(0, 1))
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description="Draws a placement policy's learning curve.")
    parser.add_argument("policy", help="policy file")
    parser.add_argument("output", help="SVG file to write")
    arguments = parser.parse_args()
    plot(read_card(arguments.policy)["curve"], arguments.output)


if __name__ == "__main__":
    main()
