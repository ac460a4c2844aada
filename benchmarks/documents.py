"""How well do autoencoders' codes find documents, beside the dissertation's tables tng_rp_auc and rcv1_rp_auc?

    python benchmarks/documents.py [--data tng,reuters] [--seeds 1] [--sizes 4000,6000,...] [--schemes gaussian,...]
                                   [--bags FOLDER] [--out documents.jsonl] [--device auto]

The reference takes counts of 2000 words, constrained Poisson units, 2000-500-250-125-32 (tng) or 2000-500-500-128
(reuters, in the place of RCV1: documents with several labels). The others take TF-IDF of D words behind a projection
to 2000 columns. Data come from $SKETCHNET_DATA; bags of words are kept in FOLDER, where a machine without a stemmer
finds them. Results are appended as they come; a run that was cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from sketchnet import SketchAutoencoder
from sketchnet.data import load_dataset
from sketchnet.data.bag_of_words import BagOfWords
from sketchnet.evaluation.retrieval import retrieval

SHAPES = {"tng": {"hidden": (500, 250, 125), "n_codes": 32}, "reuters": {"hidden": (500, 500), "n_codes": 128}}
SIZES = (4000, 6000, 8000, 10_000)
PUBLISHED = {  # areas under the curve; reuters: of RCV1
    "tng": {
        "reference": 0.373,
        "gaussian": (0.341, 0.366, 0.336, 0.333),
        "achlioptas": (0.321, 0.348, 0.326, 0.337),
        "li": (0.307, 0.356, 0.321, 0.350),
        "srht": (0.344, 0.326, 0.352, 0.327),
        "count_sketch": (0.327, 0.314, 0.311, 0.313),
    },
    "reuters": {
        "reference": 0.315,
        "gaussian": (0.306, 0.300, 0.296, 0.295),
        "achlioptas": (0.312, 0.299, 0.296, 0.290),
        "li": (0.304, 0.299, 0.292, 0.289),
        "srht": (0.305, 0.303, 0.294, 0.293),
        "count_sketch": (0.254, 0.260, 0.280, 0.278),
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="tng,reuters")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--schemes", default=",".join(PUBLISHED["tng"]))
    parser.add_argument("--bags", type=Path, default=Path("bags"))
    parser.add_argument("--out", type=Path, default=Path("documents.jsonl"))
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    done = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out.exists() else []
    for place in places(asked):
        if any(place.items() <= record.items() for record in done):
            continue
        record = {**place, **outcome(asked.bags, asked.device, **place)}
        print(json.dumps(record), file=sys.stderr, flush=True)
        with asked.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        done.append(record)
    print_table(done)


def places(asked):
    for name in asked.data.split(","):
        for seed in range(asked.seeds):
            for scheme in asked.schemes.split(","):
                sizes = [2000] if scheme == "reference" else map(int, asked.sizes.split(","))
                for words in sizes:
                    yield {"data": name, "scheme": scheme, "words": words, "seed": seed}


def outcome(bags: Path, device: str, data: str, scheme: str, words: int, seed: int) -> dict:
    learnt, test, labels = bag(bags, data, words, tfidf=scheme != "reference")
    begun, front = time.perf_counter(), {} if scheme == "reference" else {"scheme": scheme, "n_components": 2000}
    model = SketchAutoencoder(**SHAPES[data], **front, device=device, random_state=seed).fit(learnt)
    found = retrieval(model.transform(test), labels)
    figures = {"area": found.area, "mean_average_precision": found.mean_average_precision}
    figures = {name: round(float(value), 4) for name, value in figures.items()}
    return {**figures, "epochs": model.n_epochs_, "seconds": round(time.perf_counter() - begun, 1)}


def bag(folder: Path, name: str, words: int, tfidf: bool):
    """(training rows, test rows, labels of the latter), made once."""
    files = [folder / f"{name}_{words}_{int(tfidf)}{end}.npz" for end in ("", "_t")]
    labels = folder / f"{name}_labels.npz"
    if not all(path.exists() for path in (*files, labels)):
        folder.mkdir(parents=True, exist_ok=True)
        data = load_dataset(name)
        counter = BagOfWords(words, tfidf=tfidf).fit([*data.train.X, *data.valid.X])
        for path, documents in zip(files, ([*data.train.X, *data.valid.X], data.test.X)):
            sparse.save_npz(path, sparse.csr_array(counter.transform(list(documents)), dtype=np.float32))
        y = data.test.y
        sparse.save_npz(labels, sparse.csr_array(y if sparse.issparse(y) else np.asarray(y)[:, None]))
    y = sparse.load_npz(labels)
    return *map(sparse.load_npz, files), y if y.shape[1] > 1 else y.toarray()[:, 0]


def print_table(records: list[dict]) -> None:
    print("| data | projection | words | area | mean average precision | the dissertation's area |")
    print("|---|---|---|---|---|---|")
    for name, schemes in PUBLISHED.items():
        for scheme, published in schemes.items():
            sizes = {2000: published} if scheme == "reference" else dict(zip(SIZES, published))
            for words, theirs in sizes.items():
                mine = [r for r in records if (r["data"], r["scheme"], r["words"]) == (name, scheme, words)]
                if mine:
                    area, precision = (np.mean([r[key] for r in mine]) for key in ("area", "mean_average_precision"))
                    print(f"| {name} | {scheme} | {words} | {area:.3f} | {precision:.3f} | {theirs} |")


if __name__ == "__main__":
    main()
