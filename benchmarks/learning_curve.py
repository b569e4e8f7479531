"""A learning curve beside the reference's, from the tables of `fallow train`.

    python benchmarks/learning_curve.py results/dreamer/walker-walk-lean.csv

Prints mean, standard deviation and range over seeds at every evaluation. The
reference's points were read off the plot in its repository (NM512, evaluation return,
good to about 15).
"""

import argparse
import collections
import statistics

from fallow.results import read_results

REFERENCE = {
    "walker-walk": {
        25_000: 206, 50_000: 377, 100_000: 734, 150_000: 891, 200_000: 919,
    },
    "cheetah-run": {
        25_000: 127, 50_000: 281, 100_000: 405, 150_000: 480, 200_000: 538,
    },
}  # fmt: skip


def beside(task: str, frame: int) -> str:
    """The reference's point nearest to a frame, if one is within 5,000."""
    points = REFERENCE.get(task, {})
    near = [at for at in points if abs(at - frame) <= 5_000]
    return f"{points[near[0]]} at {near[0] // 1000}k" if near else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+")
    for path in parser.parse_args().tables:
        rows = read_results(path)
        task, preset = rows[0].task, rows[0].preset
        by_frame = collections.defaultdict(list)
        for row in rows:
            by_frame[row.frame].append(row.mean_return)
        n_seeds = len(by_frame[rows[0].frame])
        print(f"{task}, {rows[0].agent} {preset}, {n_seeds} seeds")
        print("| frame | mean | sd | lowest to highest | reference |")
        print("| --- | --- | --- | --- | --- |")
        for frame, means in by_frame.items():
            sd = f"{statistics.stdev(means):.0f}" if len(means) > 1 else "–"
            span = f"{min(means):.0f} to {max(means):.0f}"
            mean = statistics.mean(means)
            near = beside(task, frame)
            print(f"| {frame:,} | {mean:.0f} | {sd} | {span} | {near} |")


if __name__ == "__main__":
    main()
