"""Is the default the most accurate model one can get? It beside all rivals, each with its settings searched.

    python benchmarks/scoreboard.py [--sets urls tng] [--rivals liblinear vw] [--seeds 0 1 2] [--quick] [--retry]
    python benchmarks/scoreboard.py --page docs/scoreboard.md

The first runs what has not been run, and appends lines of JSON to FOLDER/results.jsonl (--folder, scoreboard-runs
unless given) and predictions beside them; it can be stopped and started again at any time. A run counts as made while
the library's source, or the rival's settings, are those it was made with; failed ones are made again with --retry. The
second writes the page from them. Sets are read from $SKETCHNET_DATA/NAME. Rivals come with the extra "rivals"; those
that are not installed are left out and named. --quick takes 3,000 training rows of each set, looks at no test row, and
says nothing about accuracy. reproduction/scoreboard/plan.py has the lists and the budgets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from reproduction.scoreboard.board import Board
from reproduction.scoreboard.page import write_page
from reproduction.scoreboard.plan import RIVALS, SEEDS, SETS
from reproduction.scoreboard.records import Records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS), metavar="SET")
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=list(RIVALS), metavar="RIVAL")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), metavar="SEED")
    parser.add_argument("--folder", type=Path, default=Path("scoreboard-runs"))
    parser.add_argument("--quick", action="store_true", help="3,000 training rows of each set")
    parser.add_argument("--retry", action="store_true", help="make failed runs again")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page, and run nothing")
    args = parser.parse_args()
    records = Records(args.folder)
    if args.page is not None:
        args.page.write_text(write_page(records, args.quick), encoding="utf8")
        return
    board = Board(records, args.quick, args.retry, say=lambda line: print(line, flush=True))
    board.run(args.sets, args.rivals, args.seeds)


if __name__ == "__main__":
    main()
