"""NeuroShard: a compiler that shards the embedding tables of recommendation models."""
