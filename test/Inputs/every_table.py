"""Writes a workload with every N-th table of another and the features of these tables.

    every_table.py WORKLOAD.json N > PART.json
"""

import json
import sys


def main():
    path, step = sys.argv[1], int(sys.argv[2])
    with open(path, encoding="utf-8") as file:
        workload = json.load(file)
    workload["tables"] = workload["tables"][::step]
    kept = {table["name"] for table in workload["tables"]}
    workload["features"] = [feature for feature in workload["features"]
                            if feature["table"] in kept]
    print(json.dumps(workload))


if __name__ == "__main__":
    main()
