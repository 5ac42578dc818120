"""Read a run directory and plot how its buffers grew: pip install 'partway[plots]'.

python examples/read_a_run.py RUN growth.png
"""

import sys

import matplotlib

from partway.runs import Run

matplotlib.use("Agg")
from matplotlib import pyplot


def main(directory: str, picture: str) -> None:
    run = Run.at(directory)
    lines = [line for line in run.metrics() if "buffer/fcs_per_problem" in line]
    steps = [line["step"] for line in lines]
    for key, label in [("fcs", "fully correct"), ("pcs", "partially correct")]:
        pyplot.plot(steps, [line[f"buffer/{key}_per_problem"] for line in lines], label=label)
    pyplot.xlabel("training step")
    pyplot.ylabel("solutions per problem")
    pyplot.legend()
    pyplot.savefig(picture)

    buffers = run.buffers()
    richest = max(buffers, key=lambda id: len(buffers[id]))
    print(f"{len(buffers)} problems; {richest} has {len(buffers[richest])} solutions, the last of them:")
    print([*buffers[richest].fully_correct, *buffers[richest].partially_correct][-1])


if __name__ == "__main__":
    main(*sys.argv[1:3])
