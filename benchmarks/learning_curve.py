"""A learning curve beside the reference's, from the tables of `fallow train`.

    python benchmarks/learning_curve.py results/dreamer/walker-walk-lean.csv

Prints mean, standard deviation and range over seeds at every evaluation. Dreamer's
reference points were read off the plot in its repository (NM512, evaluation return,
good to about 15); TD-MPC2's are the means of three seeds in its repository's tables.
"""

import argparse
import collections
import statistics

from fallow.results import read_results

REFERENCE = {
    ("dreamer", "walker-walk"): {
        25_000: 206, 50_000: 377, 100_000: 734, 150_000: 891, 200_000: 919,
    },
    ("dreamer", "cheetah-run"): {
        25_000: 127, 50_000: 281, 100_000: 405, 150_000: 480, 200_000: 538,
    },
    ("tdmpc", "walker-walk"): {100_000: 962, 200_000: 973},
    ("tdmpc", "cheetah-run"): {100_000: 519, 200_000: 614},
}  # fmt: skip


def beside(agent: str, task: str, frame: int) -> str:
    """The reference's point nearest to a frame, if one is within 5,000."""
    points = REFERENCE.get((agent, task), {})
    near = [at for at in points if abs(at - frame) <= 5_000]
    return f"{points[near[0]]} at {near[0] // 1000}k" if near else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+")
    for path in parser.parse_args().tables:
        rows = read_results(path)
        task, agent, preset = rows[0].task, rows[0].agent, rows[0].preset
        by_frame = collections.defaultdict(list)
        for row in rows:
            by_frame[row.frame].append(row.mean_return)
        n_seeds = len(by_frame[rows[0].frame])
        print(f"{task}, {agent} {preset}, {n_seeds} seeds")
        print("| frame | mean | sd | lowest to highest | reference |")
        print("| --- | --- | --- | --- | --- |")
        for frame, means in by_frame.items():
            sd = f"{statistics.stdev(means):.0f}" if len(means) > 1 else "–"
            span = f"{min(means):.0f} to {max(means):.0f}"
            mean = statistics.mean(means)
            near = beside(agent, task, frame)
            print(f"| {frame:,} | {mean:.0f} | {sd} | {span} | {near} |")


if __name__ == "__main__":
    main()
