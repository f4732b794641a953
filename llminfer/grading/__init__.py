"""The autograder: a judge that knows the answers, workers that run the students' code and know only the questions.

A way to read the files. An exercise: `spec`, `seeds`, `questions`. Judging one submission: `judge`, `sittings` (which
asks it), `behaviours`, `comparison`, `verdicts`, `results`. Making a failure plain: `failures`, with `shrinking`
(`named_axes`, `bounded_calls`), `mutant_hints`, `causes`, `mismatch_maps`, `reproductions`, `literals`.

The worker: `sessions` and `wire` on the judge's side, `worker` and `student_code` on the other, `kernel_calls_torch`
with `guarded_buffers` for kernels. What holds it: `isolation` tries the levels of `ladder`, which are made of
`launches`, `worker_processes`, `worker_views`, `overlay`, `confinement`, `landlock`, `system_calls`, `supervision`,
`observation` and `removal`.

What a student meets: `commands`, `workplace`, `hints`, `attempts`, `notebooks`, `magic`, and `report`, `terminal` with
their words, `explanations` and `fingerprints`.

A class: `course` and `course_file`, `late`, `rosters`; `intake` with `archives`, `owners`, `chosen_files` and
`submission_times`; `classroom` with `judge_pool`, `judge_process` and `run_folders`; `grades`, `publishing`, `exports`,
`records`, `student_pages`, `diff`. Handing out and in: `new_course`, `demo`, `handouts`, `release`, `pack`,
`pack_notes`. On Gradescope: `gradescope`, `gradescope_run`, `gradescope_results`, `gradescope_trial`. Its commands:
`class_commands`, `class_terminal`, `explaining`. Files written whole: `atomic_files`, `archive_writing`.
"""
