"""A judge that speaks the protocol of `judge_process` and decides by what stands in the file. It logs what it judged.

Run as `python fake_judge.py LOG SECONDS`.
"""

import json
import os
import sys
import time
from pathlib import Path

log, seconds = Path(sys.argv[1]), float(sys.argv[2])
json.loads(sys.stdin.readline())
for line in sys.stdin:
    job = json.loads(line)
    text = Path(job["file"]).read_text(encoding="utf-8")
    with log.open("a", encoding="utf-8") as out:
        out.write(f"{job['student']} {job['exercise']}\n")
    time.sleep(seconds)
    if text.startswith("die"):
        os._exit(3)
    if text.startswith("once") and log.read_text(encoding="utf-8").count(f"{job['student']} {job['exercise']}\n") == 1:
        os._exit(3)
    status, points = ("ok", 4.0) if text.startswith("right") or text.startswith("once") else ("wrong", 1.0)
    group = {"name": "g", "visible": True, "points": points, "max_points": 4.0, "passed": 1, "total": 4}
    result = {"exercise": job["exercise"], "title": "t", "version": 1, "status": status, "points": points}
    result |= {"max_points": 4.0, "groups": [{**group, "status": status, "note": ""}], "failure": None}
    failure = {"group": "g", "status": "wrong", "message": "it is wrong", "cause": "<script>alert(1)</script>"}
    result["failure"] = None if status == "ok" else failure
    print(json.dumps({**result, "seconds": seconds, "isolation": "", "fingerprint": {}}), flush=True)
