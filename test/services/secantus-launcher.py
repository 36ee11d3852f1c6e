"""Starts SecantusDB with its own command line, and one lookup of it made cheaper.

A findAndModify writes with the filter {_id: X, $and: [query]}. SecantusDB looks no filter with a `$` key up in an
index, so each one reads its whole collection, again and again under a workload of compare-and-set. Here the documents
of such a filter are looked up by its `_id` alone. That cannot change a result: the clauses of a filter all have to
hold, and every caller puts the documents it gets through the complete filter.

Not named secantus.py: Python finds modules beside the script first, and would take it for the package.
"""

import sys


def look_up_by_id_beside_operators():
    from secantus.storage import Storage

    lookup = Storage._try_index_id_keys

    def narrowed(self, db, coll, filter, **options):
        if filter and "_id" in filter and any(str(key).startswith("$") for key in filter):
            found = lookup(self, db, coll, {"_id": filter["_id"]}, **options)
            if found is not None:
                return found
        return lookup(self, db, coll, filter, **options)

    Storage._try_index_id_keys = narrowed


if __name__ == "__main__":
    try:
        look_up_by_id_beside_operators()
    except (ImportError, AttributeError) as error:
        print(f"secantus-launcher: findAndModify stays slow, other internals than known: {error}", file=sys.stderr)
    from secantus.cli import main

    sys.exit(main())
