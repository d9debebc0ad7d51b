"""history: results of many runs in one SQLite file, docs/how-to/history.md.

`database` opens the file and writes records, `records` makes the record of a run, `queries` reads, `change_points`
finds changes in a series, `baselines` derives thresholds from runs, `history_text` and `table` write what was read.
`diagnosis_document` is the form in which a run directory keeps its last diagnosis.
"""
