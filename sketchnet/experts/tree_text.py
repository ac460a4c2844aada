"""Boosted trees as LightGBM's text, taken apart, checked and written anew: LightGBM itself dies of a damaged one."""

from __future__ import annotations

import numpy as np

from sketchnet.errors import InputError

_END = "end of trees\n"
_LEAF_PARTS = {"leaf_value": float, "leaf_weight": float, "leaf_count": int}
_SPLIT_PARTS = {
    "split_feature": int,
    "split_gain": float,
    "threshold": float,
    "decision_type": int,
    "left_child": int,
    "right_child": int,
    "internal_value": float,
    "internal_weight": float,
    "internal_count": int,
}
_OBJECTIVES = {"binary": "binary sigmoid:1", "multiclass": "multiclass num_class:{}", "regression": "regression"}

Tree = dict[str, np.ndarray]


def join_models(texts: list[str], kind: str, n_outputs: int, n_features: int) -> str:
    """Return the text of the model whose answers are the mean of these models' answers."""
    trees = [tree for text in texts for tree in read_trees(text, n_outputs, n_features)]
    for tree in trees:
        for part in ("leaf_value", "internal_value"):
            tree[part] = tree[part] / len(texts)
    return write_model(trees, kind, n_outputs, n_features)


def write_model(trees: list[Tree], kind: str, n_outputs: int, n_features: int) -> str:
    blocks = [_write_tree(number, tree) for number, tree in enumerate(trees)]
    header = {
        "version": "v4",
        "num_class": n_outputs,
        "num_tree_per_iteration": n_outputs,
        "label_index": 0,
        "max_feature_idx": n_features - 1,
        "objective": _OBJECTIVES[kind].format(n_outputs),
        "feature_names": " ".join(f"Column_{number}" for number in range(n_features)),
        "feature_infos": " ".join(["[-inf:inf]"] * n_features),
        "tree_sizes": " ".join(str(len(block)) for block in blocks),
    }
    lines = "".join(f"{name}={value}\n" for name, value in header.items())
    return f"tree\n{lines}\n{''.join(blocks)}{_END}"


def read_trees(text: str, n_outputs: int, n_features: int) -> list[Tree]:
    """Return the trees of a model's text; raise InputError if one of them is no tree."""
    blocks = text.partition(_END)[0].split("\nTree=")[1:]
    if not blocks or len(blocks) % n_outputs:
        raise InputError(f"there are {len(blocks)} trees; {n_outputs} outputs have a multiple of that number")
    trees = []
    for number, block in enumerate(blocks):
        try:
            tree = _read_tree(block)
            _check_tree(tree, n_features)
        except (ValueError, KeyError, OverflowError) as error:
            raise InputError(f"tree {number} is damaged: {error}") from None
        trees.append(tree)
    return trees


def _write_tree(number: int, tree: Tree) -> str:
    parts = [*_LEAF_PARTS] if len(tree["leaf_value"]) == 1 else [*_SPLIT_PARTS, *_LEAF_PARTS]
    lines = [f"Tree={number}", f"num_leaves={len(tree['leaf_value'])}", "num_cat=0"]
    lines += [f"{part}={' '.join(map(repr, tree[part].tolist()))}" for part in parts]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", "", "", ""])


def _read_tree(block: str) -> Tree:
    lines = dict(line.split("=", 1) for line in block.split("\n")[1:] if line)
    if int(lines["num_cat"]) or int(lines.get("is_linear", 0)):
        raise ValueError("it has categories or linear leaves")
    n_leaves = int(lines["num_leaves"])
    tree = {}
    for parts, length in ((_LEAF_PARTS, n_leaves), (_SPLIT_PARTS, n_leaves - 1)):
        for part, number in parts.items():
            if not lines.get(part) and n_leaves == 1 and part != "leaf_value":  # a constant
                tree[part] = np.zeros(length, np.int64 if number is int else np.float64)
                continue
            tree[part] = np.array(lines[part].split(), np.int64 if number is int else np.float64)
            if len(tree[part]) != length:
                raise ValueError(f"{part} has {len(tree[part])} numbers, not {length}")
    return tree


def _check_tree(tree: Tree, n_features: int) -> None:
    """Raise ValueError unless every node but the root is the child of one before it, and all numbers are possible."""
    n_splits = len(tree["split_feature"])
    if not all(np.isfinite(values).all() for values in tree.values()):
        raise ValueError("it has numbers that are not finite")
    if ((tree["split_feature"] < 0) | (tree["split_feature"] >= n_features)).any():
        raise ValueError(f"it splits a feature beyond {n_features}")
    if ((tree["decision_type"] < 0) | (tree["decision_type"] > 10) | (tree["decision_type"] % 2 == 1)).any():
        raise ValueError("it has a split of an unknown kind")
    if (tree["leaf_count"] < 0).any() or (tree["internal_count"] < 0).any():
        raise ValueError("it counts less than no rows")
    children = np.r_[tree["left_child"], tree["right_child"]]
    parents = np.r_[np.arange(n_splits), np.arange(n_splits)]
    wanted = np.r_[np.arange(-n_splits - 1, 0), np.arange(1, n_splits)] if n_splits else np.empty(0, np.int64)
    if not np.array_equal(np.sort(children), wanted) or (parents[children > 0] >= children[children > 0]).any():
        raise ValueError("its nodes do not make a tree")
