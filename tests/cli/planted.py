"""Small files of every kind whose rule is known, and settings with which it is learnt in a second."""

import random

TINY = "--components 64 --hidden 16 --epochs 12 --batch-size 32".split()
TINY += "--set rate=0.01 --set sparse_rate=0.05 --set dropout=0".split()
FIELDS = ("--text-column", "2", "--label-column", "1")
N = 240


def plant(folder):
    """Files in which column 1, `login` and `red` decide."""
    draw = random.Random(0)
    files = {name: [] for name in ("rows.svm", "numbers.svm", "several.svm", "urls.tsv", "urls.txt", "table.csv")}
    for _ in range(N):
        y = draw.random() < 0.5
        ids = [*([1] if y else []), *sorted(draw.sample(range(2, 50), 5)), 50]
        entries = " ".join(f"{i}:1" for i in ids)
        files["rows.svm"].append(f"{2 * y - 1} {entries}")
        files["numbers.svm"].append(f"{100 + 20 * y} {entries}")
        files["several.svm"].append(f"{'0,2' if y else '1'} {entries}")
        url = draw.choice(["shop.example/ä", "news.example/", "mail.example/"]) + ("login" if y else "home")
        files["urls.txt"].append(url)
        files["urls.tsv"].append(f"{'bad' if y else 'good'}\t{url}")
        files["table.csv"].append(f"{'red' if y else 'blue'},{draw.random():.3f},{'yes' if y else 'no'}")
    files["table.csv"].insert(0, "colour,size,answer")
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
