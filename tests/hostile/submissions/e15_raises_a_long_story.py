"""E15: an exception whose message has no end, and whose text raises."""


class LongError(Exception):
    def __str__(self):
        if len(self.args) > 1:
            raise RuntimeError("even this")
        return "x" * 10_000_000


def rmsnorm(x, gain):
    raise LongError("once", *([] if x.shape[0] == 1 else ["twice"]))
