"""A learning curve beside the reference's, from the tables of `fallow train`.

    python benchmarks/learning_curve.py results/dreamer/walker-walk-lean.csv
    python benchmarks/learning_curve.py ONE.csv OTHER.csv ANOTHER.csv --until 125000

Prints mean, standard deviation and range over seeds at every evaluation. With several
tables, also each seed's mean over all evaluations that they share, later than a fifth
of them, and the first table's against the others': Welch's t, which takes no evaluation
out for being striking, and the seeds of different tables for independent. Dreamer's
reference points were read off the plot in its repository (NM512, evaluation return,
good to about 15); TD-MPC2's are the means of three seeds in its repository's tables.
"""

import argparse
import collections
import statistics

from scipy import stats

from fallow.core.results import ResultRow, read_results

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


def print_curve(rows: list[ResultRow]) -> None:
    """One table, evaluation by evaluation."""
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


def by_seed(rows: list[ResultRow], frames: set[int]) -> list[float]:
    """Each seed's mean over these evaluations."""
    returns = collections.defaultdict(list)
    for row in rows:
        if row.frame in frames:
            returns[row.seed].append(row.mean_return)
    return [statistics.mean(each) for each in returns.values()]


def print_together(tables: dict[str, list[ResultRow]]) -> None:
    """The first table against the others."""
    shared = sorted(
        set.intersection(*({row.frame for row in rows} for rows in tables.values()))
    )
    frames = set(shared[len(shared) // 5 :])
    first, *_ = means = {path: by_seed(rows, frames) for path, rows in tables.items()}
    print(f"mean of evaluations at {min(frames):,} to {max(frames):,}, over seeds")
    print("| table | seeds | mean | sd | the first less this, 95 % | p |")
    print("| --- | --- | --- | --- | --- | --- |")
    for path, values in means.items():
        mean, spread = statistics.mean(values), statistics.stdev(values)
        cells = f"{len(values)} | {mean:.0f} | {spread:.0f}"
        test = stats.ttest_ind(means[first], values, equal_var=False)
        low, high = test.confidence_interval()
        apart = statistics.mean(means[first]) - mean
        less = f"{apart:+.0f} ({low:.0f} to {high:.0f}) | {test.pvalue:.2f}"
        print(f"| {path} | {cells} | {less if path != first else ' | '} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--until", type=int, help="the last frame to look at")
    given = parser.parse_args()
    tables = {
        path: [
            row
            for row in read_results(path)
            if given.until is None or row.frame <= given.until
        ]
        for path in given.tables
    }
    for rows in tables.values():
        print_curve(rows)
    short = [p for p, rows in tables.items() if len({r.seed for r in rows}) < 2]
    if len(tables) > 1 and short:
        parser.error(f"{short[0]} has fewer than two seeds; it cannot be compared")
    if len(tables) > 1:
        print_together(tables)


if __name__ == "__main__":
    main()
